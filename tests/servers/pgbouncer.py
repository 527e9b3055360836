"""A private PgBouncer in transaction mode, in front of a Postgres of ours."""

import socket
from pathlib import Path
from urllib.parse import urlsplit

from tests.servers.account import Account
from tests.servers.process import Command, PrivateServer

SETTINGS = """\
[databases]
* = host={host} port={port} user={user}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {own}
unix_socket_dir =
pool_mode = transaction
auth_type = any
max_client_conn = 200
default_pool_size = 20
ignore_startup_parameters = {ignored}
"""


class PgBouncerServer(PrivateServer):
    """A pooler: what one client says may reach the database on any connection."""

    def __init__(self, program: Path, postgres_url: str, ignored: str = "") -> None:
        super().__init__("pgbouncer", Account.for_postgres())
        self._program = program
        self._postgres = urlsplit(postgres_url)
        self._ignored = ignored or "extra_float_digits"

    def url(self, postgres_url: str) -> str:
        """The same database, through the pooler."""
        place = f"{self._postgres.username}@127.0.0.1:{self.port}"
        return urlsplit(postgres_url)._replace(netloc=place).geturl()

    def _create(self) -> None:
        place = {"host": self._postgres.hostname, "port": self._postgres.port, "user": self._postgres.username}
        config = self.folder / "pgbouncer.ini"
        config.write_text(SETTINGS.format(own=self.port, ignored=self._ignored, **place))
        self._account.give(self.folder)

    def _command(self) -> Command:
        return [self._program, self.folder / "pgbouncer.ini"]

    def _is_ready(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

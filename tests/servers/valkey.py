"""A private Valkey, which speaks Redis, and which tests may kill."""

from collections.abc import Mapping
from pathlib import Path

import redis

from tests.servers import binaries
from tests.servers.account import Account
from tests.servers.process import Command, PrivateServer


class ValkeyServer(PrivateServer):
    """A server of our own.

    What it acknowledges is on the disk unless `appendfsync` says otherwise; with None it keeps nothing. A test may
    change the settings with which it is started next.
    """

    def __init__(
        self,
        program: Path | None = None,
        appendfsync: str | None = "always",
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self._program = program or binaries.valkey()
        super().__init__("valkey", Account())
        append = {"appendonly": "yes", "appendfsync": appendfsync} if appendfsync else {}
        self.settings = {"save": "", **append, **(settings or {})}
        self.url = f"redis://127.0.0.1:{self.port}/0"

    def _create(self) -> None:
        return

    def _command(self) -> Command:
        place = ["--bind", "127.0.0.1", "--port", str(self.port), "--dir", str(self.folder)]
        settings = [word for name, value in self.settings.items() for word in (f"--{name}", value)]
        return [self._program, *place, *settings]

    def _is_ready(self) -> bool:
        try:
            with redis.Redis.from_url(self.url) as client:
                return bool(client.ping())
        except (redis.ConnectionError, redis.BusyLoadingError):
            return False

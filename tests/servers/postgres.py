"""A private PostgreSQL that tests may kill."""

import shutil
from collections.abc import Mapping
from pathlib import Path

from tests.servers import binaries
from tests.servers.account import Account
from tests.servers.databases import Databases
from tests.servers.process import Command, PrivateServer

USER = "tape"
STATE_LINE = 7  # of postmaster.pid, counted from 0: what pg_ctl waits for, too
FOR_BUILDING = shutil.ignore_patterns("*.a", "include", "pgxs")
SETTINGS = {
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "listen_addresses": "127.0.0.1",
    "max_connections": "200",
    "max_wal_size": "256MB",
    "shared_buffers": "64MB",
    "timezone": "UTC",
}


class PostgresServer(PrivateServer, Databases):
    """A cluster of our own, as durable as a real one; its data may be on a disk of their own."""

    def __init__(
        self, programs: Path | None = None, settings: Mapping[str, str] | None = None, disk: Path | None = None
    ) -> None:
        self._programs = programs or binaries.postgres()
        PrivateServer.__init__(self, "postgres", Account.for_postgres())
        Databases.__init__(self, f"postgresql://{USER}@127.0.0.1:{self.port}/postgres")
        own = {"port": str(self.port), "unix_socket_directories": str(self.folder)}
        self._settings = SETTINGS | dict(settings or {}) | own
        self.data = (disk or self.folder) / "data"

    def kill_hard(self) -> None:
        """Kills the postmaster and all its children at once; returns when none is left.

        Restart it afterwards, also at the end of a test: only PostgreSQL frees the shared memory it had.
        """
        super().kill_hard()
        for lock in (self.data / "postmaster.pid", f".s.PGSQL.{self.port}", f".s.PGSQL.{self.port}.lock"):
            (self.folder / lock).unlink(missing_ok=True)  # the process ids in them may soon be somebody else's

    def _create(self) -> None:
        self._programs = self._reachable(self._programs)
        # Only what the server itself syncs is tested, so initdb need not.
        options = ["--auth=trust", f"--username={USER}", "--locale=C", "--encoding=UTF8", "--no-sync"]
        self._run([self._programs / "initdb", *options, f"--pgdata={self.data}"])

    def _reachable(self, programs: Path) -> Path:
        """The programs, or a copy where a private home hides them from whom they run as."""
        if self._account.can(programs / "postgres", "--version"):
            return programs
        packages, copy = programs.parents[2], self.folder / "install"
        libraries = packages / f"{programs.parents[1].name}.libs"  # a wheel keeps them beside its package
        for part in filter(Path.exists, (programs.parent, libraries)):
            shutil.copytree(part, copy / part.relative_to(packages), ignore=FOR_BUILDING, symlinks=True)
        self._account.give(copy)
        return copy / programs.relative_to(packages)

    def _command(self) -> Command:
        settings = [f"--{name}={value}" for name, value in self._settings.items()]
        return [self._programs / "postgres", "-D", self.data, *settings]

    def _is_ready(self) -> bool:
        try:
            state = (self.data / "postmaster.pid").read_text().splitlines()[STATE_LINE:]
        except FileNotFoundError:
            return False
        return [line.strip() for line in state] in (["ready"], ["standby"])

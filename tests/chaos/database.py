"""The database of the chaos: a PostgreSQL on a small disk, and a standby on another if one is to be promoted."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.chaos.plan import Promotion
from tests.process.processes import until
from tests.servers.account import Account
from tests.servers.databases import execute, name
from tests.servers.postgres import USER, PostgresServer
from tests.servers.small_disk import SmallDisk, mounted_disk
from tests.servers.standby import NAME, PostgresStandby

DISK = 768 << 20  # PostgreSQL needs 40 MB, and its write-ahead log may take 256
TABLES = (
    "CREATE TABLE orders (n bigint NOT NULL)",
    "CREATE TABLE effects (n bigint NOT NULL, handler text NOT NULL)",
)


class ChaosDatabase:
    """One URL for clients, which leads to whichever server can be written to, and one for the harness."""

    def __init__(self, promotion: Promotion) -> None:
        self._promotion = promotion
        self._stack = ExitStack()
        self._servers: list[PostgresServer] = []
        self._disks: list[SmallDisk] = []
        self._name = ""
        self.is_promoted = False

    def open(self) -> None:
        primary = self._stack.enter_context(PostgresServer(disk=self._new_disk()))
        self._servers.append(primary)
        self._name = name(primary.create_database())
        if self._promotion != "none":
            self._servers.append(self._stack.enter_context(PostgresStandby(primary, self._new_disk())))
        if self._promotion == "synchronous":
            execute(primary.url("postgres"), f"ALTER SYSTEM SET synchronous_standby_names = '{NAME}'")
            execute(primary.url("postgres"), "SELECT pg_reload_conf()")
        for table in TABLES:
            execute(self.direct_url, table)

    def _new_disk(self) -> Path:
        self._disks.append(self._stack.enter_context(mounted_disk(DISK, Account.for_postgres())))
        return self._disks[-1].folder

    @property
    def ports(self) -> list[int]:
        return [server.port for server in self._servers]

    @property
    def url(self) -> str:
        return self.url_by(self.ports)

    def url_by(self, ports: Sequence[int]) -> str:
        """The URL if the servers are reached at these ports."""
        hosts = ",".join(f"127.0.0.1:{port}" for port in ports)
        return f"postgresql://{USER}@{hosts}/{self._name}?target_session_attrs=primary"

    @property
    def direct_url(self) -> str:
        """Of the server that can be written to now."""
        return self._writable.url(self._name)

    @property
    def _writable(self) -> PostgresServer:
        return self._servers[self.is_promoted]

    def kill(self) -> None:
        self._writable.kill_hard()
        self._writable.restart()

    @contextmanager
    def frozen(self) -> Iterator[None]:
        with self._writable.frozen():
            yield

    def fill_disk(self, for_s: float) -> bool:
        """Leaves it no room for a while; it may give up, and is then started again. False without a small disk."""
        disk = self._disks[self.is_promoted]
        with disk.full():
            time.sleep(for_s)
        self.revive()
        return disk.is_mounted

    def revive(self) -> None:
        """Starts it again if it has ended: PostgreSQL does when it has no room for its write-ahead log."""
        if not self._writable.is_running:
            self.kill()

    def promote(self, acknowledged: Callable[[], int]) -> None:
        """Kills the primary; a standby that lags lacks at least one append that was acknowledged."""
        primary, standby = self._servers
        assert isinstance(standby, PostgresStandby)
        if self._promotion == "lagging":
            standby.stop_receiving()
            before = acknowledged()
            until(lambda: acknowledged() > before, "an append that will be lost is acknowledged")
        primary.kill_hard()
        standby.promote()
        self.is_promoted = True

    def close(self) -> None:
        if self.is_promoted:
            self._servers[0].restart()  # only PostgreSQL frees the shared memory it had
        self._stack.close()

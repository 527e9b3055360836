"""The database of the chaos: a PostgreSQL, and a standby if one is to be promoted."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from tests.chaos.plan import Promotion
from tests.process.processes import until
from tests.servers.databases import execute, name
from tests.servers.postgres import USER, PostgresServer
from tests.servers.standby import NAME, PostgresStandby

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
        self._name = ""
        self._is_promoted = False

    def open(self) -> None:
        primary = self._stack.enter_context(PostgresServer())
        self._servers.append(primary)
        self._name = name(primary.create_database())
        if self._promotion != "none":
            self._servers.append(self._stack.enter_context(PostgresStandby(primary)))
        if self._promotion == "synchronous":
            execute(primary.url("postgres"), f"ALTER SYSTEM SET synchronous_standby_names = '{NAME}'")
            execute(primary.url("postgres"), "SELECT pg_reload_conf()")
        for table in TABLES:
            execute(self.direct_url, table)

    @property
    def url(self) -> str:
        hosts = ",".join(f"127.0.0.1:{server.port}" for server in self._servers)
        return f"postgresql://{USER}@{hosts}/{self._name}?target_session_attrs=primary"

    @property
    def direct_url(self) -> str:
        """Of the server that can be written to now."""
        return self._writable.url(self._name)

    @property
    def _writable(self) -> PostgresServer:
        return self._servers[self._is_promoted]

    def kill(self) -> None:
        self._writable.kill_hard()
        self._writable.restart()

    @contextmanager
    def frozen(self) -> Iterator[None]:
        with self._writable.frozen():
            yield

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
        self._is_promoted = True

    def close(self) -> None:
        if self._is_promoted:
            self._servers[0].restart()  # only PostgreSQL frees the shared memory it had
        self._stack.close()

"""The Redis store: a journal and its runs under one prefix; what it lacks raises `UsageError`."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final

from tape.core.background import background
from tape.core.errors import UsageError
from tape.core.ids import Epoch, GlobalSeq
from tape.core.page import ANSWER_BYTES
from tape.core.ports import (
    DUE_START,
    Audit,
    CellQuery,
    CellSnapshot,
    DueCursor,
    Reactions,
    Tasks,
    Transaction,
    Wake,
    WorkFilter,
)
from tape.core.sequence import Cell, CellId
from tape.store.redis.append import Appender
from tape.store.redis.connection import Connections
from tape.store.redis.journal import Journal
from tape.store.redis.listen import JournalWake
from tape.store.redis.location import Location
from tape.store.redis.retention import Retention
from tape.store.redis.runs import Runs
from tape.store.redis.scripts import BEGIN
from tape.store.redis.server import Server
from tape.store.timeouts import Timeouts

TIMEOUTS: Final = Timeouts(connect_s=5.0, answer_s=10.0)


class RedisStore:
    """The parts of a store in one data set."""

    applied: tuple[str, ...] = ()

    def __init__(self, server: Server, journal: Journal) -> None:
        self._server = server
        self.journal = journal
        self.runs = Runs(server)
        self.retention = Retention(server, journal)
        self.cells = NoCells()

    @property
    def epoch(self) -> Epoch:
        return self._server.data_set.epoch

    @property
    def reactions(self) -> Reactions:
        raise _lacks("reactions")

    @property
    def tasks(self) -> Tasks:
        raise _lacks("tasks")

    @property
    def audit(self) -> Audit:
        raise _lacks("an audit")

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        raise _lacks("transactions")

    async def new_epoch(self) -> Epoch:
        seen = self._server.data_set
        epoch, head = await self._server.run(BEGIN, seen.epoch, seen.head)
        seen.observe(Epoch(int(epoch)), GlobalSeq(int(head)))
        return self.epoch


class NoCells:
    """Redis has no ledgers."""

    async def read(self, ids: Sequence[CellId]) -> Mapping[CellId, Cell]:
        raise _lacks("ledgers")

    async def snapshot(self, ids: Sequence[CellId]) -> CellSnapshot:
        raise _lacks("ledgers")

    async def due(
        self,
        ledger: str,
        status: str,
        through_ms: int,
        limit: int,
        after: DueCursor = DUE_START,
        served: WorkFilter | None = None,
    ) -> Mapping[CellId, Cell]:
        raise _lacks("ledgers")

    async def under(self, ledger: str, parent: str, limit: int, after: str = "") -> Mapping[CellId, Cell]:
        raise _lacks("ledgers")

    async def listed(
        self, query: CellQuery, limit: int, after: str = "", max_bytes: int = ANSWER_BYTES
    ) -> Mapping[CellId, Cell]:
        raise _lacks("ledgers")


@asynccontextmanager
async def open_store(
    location: Location, wake: Wake | None = None, timeouts: Timeouts = TIMEOUTS, *, must_exist: bool = False
) -> AsyncIterator[RedisStore]:
    """The store under a prefix of a server, whose durability is checked first; created unless it `must_exist`."""
    connections = Connections(location.url, timeouts)
    server, listener = Server(connections, location.root), JournalWake(connections, location.root, timeouts)
    try:
        if must_exist:
            await server.check_exists()
        await server.enter()
        appender = Appender(server, location.keep_per_run, timeouts.recovery_s)
        journal = Journal(server, appender, listener, wake or listener)
        async with background(*([listener.run] if wake is None else [])):
            yield RedisStore(server, journal)
    finally:
        await connections.close()


def _lacks(what: str) -> UsageError:
    return UsageError(f"redis:// has no {what}: use memory://, sqlite:///file or postgresql://")

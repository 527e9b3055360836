"""The in-memory store with the test's clock and faults."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final

from tape.core.errors import Unavailable
from tape.core.ports import AppendOutcome
from tape.core.sequence import AppendRequest
from tape.store.connection import Query, Row
from tape.store.sqlite.connection import Database, SqliteTransaction
from tape.store.sqlite.location import Location
from tape.store.sqlite.store import SqliteStore
from tape.store.sqlite.wake import NoWake
from tape.store.sqlite.writer import Writer
from tape.testing.clock import Clock
from tape.testing.faults import Faults

NOW: Final = "now_ms"  # every statement that needs the time has a parameter of this name


class ClockedTransaction(SqliteTransaction):
    """A transaction that uses the test's clock."""

    def __init__(self, block: SqliteTransaction, clock: Clock) -> None:
        super().__init__(block._worker)  # noqa: SLF001 - the same transaction on the same thread
        self.staged = block.staged
        self._clock = clock

    async def fetch(self, statement: str, parameters: Mapping[str, object]) -> Sequence[Row]:
        return await super().fetch(statement, timed(parameters, self._clock))


class ClockedDatabase(Database):
    """An in-memory database with the test's clock and faults."""

    def __init__(self, clock: Clock, faults: Faults) -> None:
        location = Location.parse("memory://?keep=1000000")
        super().__init__(location, Writer(location.keep_per_run, clock.now_ms), NoWake())
        self._clock = clock
        self._faults = faults

    async def snapshot(self, *queries: Query) -> Sequence[Sequence[Row]]:
        asked = [query._replace(parameters=timed(query.parameters, self._clock)) for query in queries]
        return await super().snapshot(*asked)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[SqliteTransaction]:
        async with super().transaction() as block:
            clocked = ClockedTransaction(block, self._clock)
            yield clocked
        clocked.outcomes = block.outcomes

    async def append(self, requests: Sequence[AppendRequest]) -> Sequence[AppendOutcome]:
        """A refused request was not written; one with a lost answer was."""
        fates = [self._faults.of_append(request) for request in requests]
        sent = [request for request, fate in zip(requests, fates, strict=True) if fate != "refused"]
        answers = iter(await super().append(sent) if sent else ())
        return [_outcome(fate, answers) for fate in fates]


@asynccontextmanager
async def open_store(clock: Clock, faults: Faults) -> AsyncIterator[SqliteStore]:
    database = ClockedDatabase(clock, faults)
    try:
        yield SqliteStore(database, await database.migrate(), is_bounded=True)
    finally:
        await database.stop()


def timed(parameters: Mapping[str, object], clock: Clock) -> Mapping[str, object]:
    return {**parameters, NOW: clock.now_ms()} if NOW in parameters else parameters


def _outcome(fate: str | None, answers: Iterator[AppendOutcome]) -> AppendOutcome:
    if fate == "refused":
        return Unavailable("a fault was injected before the append")
    answer = next(answers)
    return answer if fate is None else Unavailable("a fault was injected after the append", "unknown")

"""The append: one call of one function for each group, on one connection that remembers where runs stand."""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, NamedTuple

import anyio
import asyncpg

from tape.core.errors import TapeError, Unavailable
from tape.core.event import Entry
from tape.core.ids import Epoch, GlobalSeq, RunId, Seq
from tape.core.ports import Outcome
from tape.core.sequence import KeyRecord, Request
from tape.store.postgres.call import Answer, Call
from tape.store.postgres.errors import LOST, translate
from tape.store.postgres.group import independent
from tape.store.statements import statements

CACHED_RUNS: Final = 10_000
RECOVERY_S: Final = 15.0
RETRY_S: Final = 0.1


class _Sql(NamedTuple):
    append: str
    head: str
    between: str
    end_session: str
    is_alive: str
    lock: str
    written: str


class Appender:
    """Appends on a connection of its own; while nobody else writes, what it knows of runs is the truth."""

    def __init__(self, connect: Callable[[], Awaitable[asyncpg.Connection]]) -> None:
        self._connect = connect
        self._sql = _Sql(**statements("postgres", "append.sql"))
        self._connection: asyncpg.Connection | None = None
        self._turn = anyio.Lock()
        self._head = GlobalSeq(0)
        self._changes = -1
        self._epoch = Epoch(0)
        self._lasts: dict[RunId, tuple[Seq, str]] = {}

    async def append(self, requests: Sequence[Request]) -> list[Outcome]:
        outcomes: list[Outcome] = []
        async with self._turn:
            for group in independent(requests):
                outcomes += await self._send(group)
        return outcomes

    async def close(self) -> None:
        if self._connection is not None:
            await self._connection.close()

    async def _send(self, requests: Sequence[Request]) -> list[Outcome]:
        call = Call(requests)
        connection = await self._connected()
        arguments = call.arguments(time.time_ns() // 1_000_000, self._head, self._changes, self._known(call))
        try:
            answer = Answer(*await connection.fetchrow(self._sql.append, *arguments))
        except LOST as error:
            return await self._recover(requests, connection, error)
        except asyncpg.PostgresError as error:
            raise translate(error) from error
        outcomes = call.outcomes(answer)
        self._learn(call, answer, outcomes)
        return [await self._settled(connection, *pair) for pair in zip(requests, outcomes, strict=True)]

    async def _connected(self) -> asyncpg.Connection:
        if self._connection is None or self._connection.is_closed():
            self._changes = -1
            self._connection = await self._connect()
            self._head = max(self._head, await self._connection.fetchval(self._sql.head))
        return self._connection

    def _known(self, call: Call) -> list[Seq] | None:
        """Where the call's runs stand, if all of them are known to be open and of the right type."""
        lasts = []
        for run_id, content_type in call.types.items():
            last, held = self._lasts.get(run_id, (None, None))
            if last is None or held != content_type:
                return None
            lasts.append(last)
        return lasts

    def _learn(self, call: Call, answer: Answer, outcomes: Sequence[object]) -> None:
        if (answer.base, answer.changes) != (self._head, self._changes) or len(self._lasts) > CACHED_RUNS:
            self._lasts.clear()
        self._head, self._changes, self._epoch = answer.base, answer.changes, answer.epoch
        for outcome in outcomes:
            for entry in outcome if isinstance(outcome, list) else ():
                self._lasts[entry.run_id] = (entry.seq, call.types[entry.run_id])
                self._head = entry.global_seq

    async def _settled(
        self, connection: asyncpg.Connection, request: Request, outcome: Sequence[Entry] | KeyRecord | TapeError
    ) -> Outcome:
        if not isinstance(outcome, KeyRecord):
            return outcome
        last = outcome.first + len(outcome.seqs) - 1
        stored = [Entry._make(row) for row in await connection.fetch(self._sql.between, outcome.first, last)]
        return stored if len(stored) == len(outcome.seqs) else outcome.entries(request.events, self._epoch)

    async def _recover(
        self, requests: Sequence[Request], lost: asyncpg.Connection, error: BaseException
    ) -> list[Outcome]:
        """Unknown is not failed: the old session is ended, and under the lock the journal says what it wrote."""
        process, self._connection = lost.get_server_pid(), None
        with anyio.move_on_after(RECOVERY_S):
            while True:
                try:
                    written = await self._written(requests, process)
                except LOST:
                    await anyio.sleep(RETRY_S)
                else:
                    return await self._finish(requests, written)
        return [Unavailable(f"the connection to Postgres was lost ({error})", "unknown")] * len(requests)

    async def _written(self, requests: Sequence[Request], process: int) -> Mapping[str, Entry]:
        """What is in the journal of these requests, once the session that sent them is gone for good."""
        connection = await self._connected()
        await connection.execute(self._sql.end_session, process)
        while await connection.fetchval(self._sql.is_alive, process):  # noqa: ASYNC110 - only asking can tell
            await anyio.sleep(RETRY_S)
        ids = [event.event_id for request in requests for event in request.events]
        async with connection.transaction():
            await connection.execute(self._sql.lock)
            rows = await connection.fetch(self._sql.written, self._head, ids)
        return {entry.event_id: entry for entry in map(Entry._make, rows)}

    async def _finish(self, requests: Sequence[Request], written: Mapping[str, Entry]) -> list[Outcome]:
        """What is there is answered, what is provably absent is sent again; of cells alone nothing can be proved."""
        outcomes: list[Outcome] = []
        for request in requests:
            if not request.events:
                outcomes.append(Unavailable("the connection to Postgres was lost", "unknown"))
            elif request.events[0].event_id in written:
                outcomes.append([written[event.event_id] for event in request.events])
            else:
                outcomes += await self._send([request])
        return outcomes

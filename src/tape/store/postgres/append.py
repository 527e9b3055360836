"""The append: one call of one function for each group, on one connection that remembers where runs stand."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

import anyio
import asyncpg

from tape.core.errors import TapeError, Unavailable, UsageError
from tape.core.event import Entry
from tape.core.ids import Epoch, GlobalSeq, RunId, Seq
from tape.core.ports import AppendOutcome
from tape.core.sequence import KeyRecord, Request
from tape.store.postgres.call import Answer, Call, one_event
from tape.store.postgres.errors import BAD_VALUE, LOST, is_crowded, said
from tape.store.postgres.group import independent
from tape.store.postgres.qualified import qualified
from tape.store.statements import statements

CACHED_RUNS: Final = 10_000
RETRY_S: Final = 0.1


class _Sql(NamedTuple):
    append: str
    append_one: str
    begin: str
    between: str
    end_session: str
    is_alive: str
    lock: str
    written: str


class _Session(NamedTuple):
    """Which session of the server a connection has; its process id alone may be somebody else's after a restart."""

    process: int
    began: datetime


class Appender:
    """Appends on a connection of its own; while nobody else writes, what it knows of runs is the truth."""

    def __init__(self, connect: Callable[[], Awaitable[asyncpg.Connection]], recovery_s: float, schema: str) -> None:
        self._connect = connect
        self._recovery_s = recovery_s
        self._sql = _Sql(*(qualified(sql, schema) for sql in _Sql(**statements("postgres", "append.sql"))))
        self._connection: asyncpg.Connection | None = None
        self._session = _Session(0, datetime.fromtimestamp(0, UTC))
        self._turn = asyncio.Lock()
        self._head = GlobalSeq(0)
        self._changes = -1
        self._epoch = Epoch(0)
        self._lasts: dict[RunId, tuple[Seq, str]] = {}

    @property
    def process(self) -> int:
        """The server's process that appends for us."""
        return self._session.process

    async def append(self, requests: Sequence[Request]) -> list[AppendOutcome]:
        """Tells each request its own outcome: once one group is written, an error of the next must not hide it."""
        outcomes: list[AppendOutcome] = []
        async with self._turn:
            for group in (requests,) if len(requests) == 1 else independent(requests):
                outcomes += await self._outcomes(group)
        return outcomes

    async def close(self) -> None:
        if self._connection is not None:
            await self._connection.close()

    async def _outcomes(self, requests: Sequence[Request]) -> list[AppendOutcome]:
        """One call for all; when a value fails it, one call each, so that it fails alone."""
        try:
            return await self._send(requests)
        except BAD_VALUE as error:
            if is_crowded(error):
                return [Unavailable(f"Postgres takes no more ({error})") for _ in requests]
            if len(requests) == 1:
                return [UsageError(f"Postgres cannot hold a value of the request ({error})")]
        except (asyncpg.PostgresError, *LOST) as error:
            return [Unavailable(f"Postgres did not append ({said(error)})") for _ in requests]
        except UsageError as error:  # a server that forgets
            return [error for _ in requests]
        return [outcome for request in requests for outcome in await self._outcomes([request])]

    async def _send(self, requests: Sequence[Request]) -> list[AppendOutcome]:
        """The outcomes of one call. An error it raises means that nothing was written."""
        connection = await self._connected()
        try:
            if len(requests) == 1 and (entries := await self._appended_one(connection, requests[0])):
                return [entries]
        except LOST as error:
            return await self._recover(requests, error)
        call = Call(requests)
        arguments = call.arguments(time.time_ns() // 1_000_000, self._head, self._changes, self._known(call))
        try:
            answer = Answer(*await connection.fetchrow(self._sql.append, *arguments))
        except LOST as error:
            return await self._recover(requests, error)
        outcomes = call.outcomes(answer)
        self._learn(call, answer, outcomes)
        return [await self._settled(connection, *pair) for pair in zip(requests, outcomes, strict=True)]

    async def _connected(self) -> asyncpg.Connection:
        if self._connection is None or self._connection.is_closed():
            self._changes = -1
            self._connection = await self._connect()
            self._head, *session = await self._connection.fetchrow(self._sql.begin)
            self._session = _Session(*session)
        return self._connection

    async def _appended_one(self, connection: asyncpg.Connection, request: Request) -> Sequence[Entry] | None:
        """The entry of a request that is one event and nothing else; if it is more, or somebody else wrote, nothing."""
        if not request.is_one_event:
            return None
        (event,) = request.events
        last, held = self._lasts.get(event.run_id, (None, None))
        if last is None or held != event.content_type:
            return None
        arguments = one_event(event, time.time_ns() // 1_000_000, self._head, self._changes, last)
        ts_ms = await connection.fetchval(self._sql.append_one, *arguments)
        if ts_ms is None:
            return None
        entry = event.at(self._head + 1, last + 1, ts_ms, 0, self._epoch)
        self._head = entry.global_seq
        self._lasts[event.run_id] = (entry.seq, held)
        return [entry]

    def _known(self, call: Call) -> list[Seq] | None:
        """Where the call's runs stand, if all of them are known to be open and of the right type."""
        if call.fork is not None:
            return None
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
                self._head = entry.global_seq
                if call.fork is None:  # what a child may hold, only its parent's head says
                    self._lasts[entry.run_id] = (entry.seq, call.types[entry.run_id])

    async def _settled(
        self, connection: asyncpg.Connection, request: Request, outcome: Sequence[Entry] | KeyRecord | TapeError
    ) -> AppendOutcome:
        if not isinstance(outcome, KeyRecord):
            return outcome
        last = outcome.first + len(outcome.seqs) - 1
        try:
            stored = [Entry._make(row) for row in await connection.fetch(self._sql.between, outcome.first, last)]
        except (asyncpg.PostgresError, *LOST) as error:
            return Unavailable(f"Postgres did not say where the request is ({said(error)})", "unknown")
        return stored if len(stored) == len(outcome.seqs) else outcome.entries(request.events, self._epoch)

    async def _recover(self, requests: Sequence[Request], error: Exception) -> list[AppendOutcome]:
        """Unknown is not failed: the old session is ended, and under the lock the journal says what it wrote."""
        since, session = self._head, self._session
        self._give_up()
        with anyio.move_on_after(self._recovery_s):
            while True:
                try:
                    written = await self._written(requests, since, session)
                except (asyncpg.PostgresError, UsageError, *LOST):
                    await anyio.sleep(RETRY_S)
                else:
                    return await self._finish(requests, written)
        return [Unavailable(f"the connection to Postgres was lost ({said(error)})", "unknown")] * len(requests)

    def _give_up(self) -> None:
        """Lets go of a connection that may still be open, with an answer to come that nobody waits for."""
        if self._connection is not None:
            self._connection.terminate()
        self._connection = None

    async def _written(self, requests: Sequence[Request], since: GlobalSeq, session: _Session) -> list[Entry]:
        """What is in the journal of these requests, once the session that sent them is gone for good."""
        connection = await self._connected()
        await connection.execute(self._sql.end_session, *session)
        while await connection.fetchval(self._sql.is_alive, *session):  # noqa: ASYNC110 - only asking can tell
            await anyio.sleep(RETRY_S)
        ids = [event.event_id for request in requests for event in request.events]
        async with connection.transaction():
            await connection.execute(self._sql.lock)
            rows = await connection.fetch(self._sql.written, since, ids)
        return [Entry._make(row) for row in rows]

    async def _finish(self, requests: Sequence[Request], written: list[Entry]) -> list[AppendOutcome]:
        """What is there is answered, what is provably absent is sent again; of cells alone nothing can be proved."""
        outcomes: list[AppendOutcome] = []
        for request in requests:
            if not request.events:
                outcomes.append(Unavailable("the connection to Postgres was lost", "unknown"))
            elif found := _found(request, written):
                outcomes.append(found)
            else:
                outcomes += await self._outcomes([request])
        return outcomes


def _found(request: Request, written: list[Entry]) -> Sequence[Entry]:
    """A request's own entries, taken out of what was written: they follow each other, and say just what it said."""
    count = len(request.events)
    said = [(event.event_id, event.run_id, event.crc) for event in request.events]
    for first in range(len(written) - count + 1):
        entries = written[first : first + count]
        is_unbroken = entries[-1].global_seq - entries[0].global_seq == count - 1
        if is_unbroken and [(entry.event_id, entry.run_id, entry.crc) for entry in entries] == said:
            del written[first : first + count]
            return entries
    return ()

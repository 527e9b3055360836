"""The append: one call of one function for each group, on one connection that caches the heads of runs."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from itertools import chain
from typing import Final, NamedTuple

import anyio
import asyncpg

from tape.core.errors import TapeError, Unavailable, UsageError
from tape.core.event import Entry
from tape.core.ids import Epoch, GlobalSeq, RunId, Seq
from tape.core.ports import AppendOutcome
from tape.core.sequence import AppendRequest, KeyRecord
from tape.store.clock import now_ms
from tape.store.postgres.call import AppendCall, AppendResult, in_order, one_event
from tape.store.postgres.errors import BAD_VALUE, LOST, error_text, is_crowded
from tape.store.postgres.group import independent
from tape.store.postgres.qualified import qualified
from tape.store.postgres.stored import stored_entries
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
    """A session of the server; its process id alone may belong to another session after a restart."""

    process: int
    began: datetime


class Appender:
    """Appends on a connection of its own; while nobody else writes, its cached heads of runs are right."""

    def __init__(self, connect: Callable[[], Awaitable[asyncpg.Connection]], recovery_s: float, schema: str) -> None:
        self._connect = connect
        self._recovery_s = recovery_s
        self._sql = _Sql(*(qualified(sql, schema) for sql in _Sql(**statements("postgres", "append.sql"))))
        self._connection: asyncpg.Connection | None = None
        self._session = _Session(0, datetime.fromtimestamp(0, UTC))
        self._lock = asyncio.Lock()
        self._head = GlobalSeq(0)
        self._changes = -1
        self._epoch = Epoch(0)
        self._lasts: dict[RunId, tuple[Seq, str]] = {}

    @property
    def process(self) -> int:
        """The process id of the server that appends for this node."""
        return self._session.process

    async def append(self, requests: Sequence[AppendRequest]) -> list[AppendOutcome]:
        """One outcome for each request: an error in one group does not hide that another one was written."""
        outcomes: list[AppendOutcome] = []
        async with self._lock:
            for group in (requests,) if len(requests) == 1 else independent(requests):
                outcomes += await self._outcomes(group)
        return outcomes

    async def close(self) -> None:
        if self._connection is not None:
            await self._connection.close()

    async def _outcomes(self, requests: Sequence[AppendRequest]) -> list[AppendOutcome]:
        """Sends the requests as one group; if a value is refused, one by one, so that only its request fails."""
        try:
            return await self._send(requests)
        except BAD_VALUE as error:
            if is_crowded(error):
                return [Unavailable(f"Postgres takes no more ({error})") for _ in requests]
            if len(requests) == 1:
                return [UsageError(f"Postgres cannot hold a value of the request ({error})")]
        except (asyncpg.PostgresError, *LOST) as error:
            return [Unavailable(f"Postgres did not append ({error_text(error)})") for _ in requests]
        except UsageError as error:  # the server is not durable
            return [error for _ in requests]
        return [outcome for request in requests for outcome in await self._outcomes([request])]

    async def _send(self, requests: Sequence[AppendRequest]) -> list[AppendOutcome]:
        """The outcomes of a group. An error it raises means that nothing was written."""
        connection = await self._connected()
        try:
            if len(requests) == 1 and (entries := await self._append_one(connection, requests[0])):
                return [entries]
            call = AppendCall(requests)
            arguments = call.arguments(now_ms(), self._head, self._changes, self._known(call))
            result = AppendResult(*await connection.fetchrow(self._sql.append, *arguments))
        except LOST as error:
            return await self._recover(requests, error)
        appended = call.entries(result) if result.refused is None else []
        self._learn(call, result, appended)
        return [*appended] if result.refused is None else await self._without_refused(call, result.refused)

    async def _without_refused(self, call: AppendCall, refused: str) -> list[AppendOutcome]:
        """Nothing of the group was appended: the requests that were not refused are sent again."""
        verdicts = call.verdicts(refused)
        judged = {index: await self._outcome(call.requests[index], verdict) for index, verdict in verdicts.items()}
        others = [request for index, request in enumerate(call.requests) if index not in judged]
        return in_order(len(call.requests), judged, await self._outcomes(others) if others else ())

    async def _connected(self) -> asyncpg.Connection:
        if self._connection is None or self._connection.is_closed():
            self._changes = -1
            self._connection = await self._connect()
            self._head, *session = await self._connection.fetchrow(self._sql.begin)
            self._session = _Session(*session)
        return self._connection

    async def _append_one(self, connection: asyncpg.Connection, request: AppendRequest) -> Sequence[Entry] | None:
        """Appends one event to a run that is known; None if the request is more, or somebody else has written."""
        if not request.is_one_event:
            return None
        (event,) = request.events
        last, held = self._lasts.get(event.run_id, (None, None))
        if last is None or held != event.content_type:
            return None
        arguments = one_event(event, now_ms(), self._head, self._changes, last)
        ts_ms = await connection.fetchval(self._sql.append_one, *arguments)
        if ts_ms is None:
            return None
        entry = event.at(self._head + 1, last + 1, ts_ms, 0, self._epoch)
        self._head = entry.global_seq
        self._lasts[event.run_id] = (entry.seq, held)
        return [entry]

    def _known(self, call: AppendCall) -> list[Seq] | None:
        """The last seqs of the call's runs, if all of them are known to be open and of the right content type."""
        if call.fork is not None:
            return None
        lasts = []
        for run_id, content_type in call.types.items():
            last, held = self._lasts.get(run_id, (None, None))
            if last is None or held != content_type:
                return None
            lasts.append(last)
        return lasts

    def _learn(self, call: AppendCall, result: AppendResult, appended: Sequence[Sequence[Entry]]) -> None:
        if (result.base, result.changes) != (self._head, self._changes) or len(self._lasts) > CACHED_RUNS:
            self._lasts.clear()
        self._head, self._changes, self._epoch = result.base, result.changes, result.epoch
        for entry in chain.from_iterable(appended):
            self._head = entry.global_seq
            if call.fork is None:  # the content type of a child is its parent's
                self._lasts[entry.run_id] = (entry.seq, call.types[entry.run_id])

    async def _outcome(self, request: AppendRequest, verdict: KeyRecord | TapeError) -> AppendOutcome:
        if isinstance(verdict, TapeError):
            return verdict
        try:
            return await stored_entries(await self._connected(), self._sql.between, request, verdict, self._epoch)
        except (asyncpg.PostgresError, *LOST) as error:
            return Unavailable(f"Postgres did not say where the request is ({error_text(error)})", "unknown")

    async def _recover(self, requests: Sequence[AppendRequest], error: Exception) -> list[AppendOutcome]:
        """Finds out what a lost call has written: ends its session, then reads the journal under the lock."""
        since, session = self._head, self._session
        self._disconnect()
        with anyio.move_on_after(self._recovery_s):
            while True:
                try:
                    written = await self._written(requests, since, session)
                except (asyncpg.PostgresError, UsageError, *LOST):
                    await anyio.sleep(RETRY_S)
                else:
                    return await self._finish(requests, written)
        return [Unavailable(f"the connection to Postgres was lost ({error_text(error)})", "unknown")] * len(requests)

    def _disconnect(self) -> None:
        """Drops a connection that may still be open and waiting for an answer."""
        if self._connection is not None:
            self._connection.terminate()
        self._connection = None

    async def _written(self, requests: Sequence[AppendRequest], since: GlobalSeq, session: _Session) -> list[Entry]:
        """The entries of these requests in the journal, once the session that sent them has ended."""
        connection = await self._connected()
        await connection.execute(self._sql.end_session, *session)
        while await connection.fetchval(self._sql.is_alive, *session):  # noqa: ASYNC110 - the server does not notify
            await anyio.sleep(RETRY_S)
        ids = [event.event_id for request in requests for event in request.events]
        async with connection.transaction():
            await connection.execute(self._sql.lock)
            rows = await connection.fetch(self._sql.written, since, ids)
        return [Entry._make(row) for row in rows]

    async def _finish(self, requests: Sequence[AppendRequest], written: list[Entry]) -> list[AppendOutcome]:
        """Answers what was written and sends again what was not; of a request with cells alone neither is known."""
        outcomes: list[AppendOutcome] = []
        for request in requests:
            if not request.events:
                outcomes.append(Unavailable("the connection to Postgres was lost", "unknown"))
            elif found := _found(request, written):
                outcomes.append(found)
            else:
                outcomes += await self._outcomes([request])
        return outcomes


def _found(request: AppendRequest, written: list[Entry]) -> Sequence[Entry]:
    """Takes the entries of a request out of `written`: consecutive ones with the same ids and checksums."""
    count = len(request.events)
    wanted = [(event.event_id, event.run_id, event.crc) for event in request.events]
    for first in range(len(written) - count + 1):
        entries = written[first : first + count]
        is_unbroken = entries[-1].global_seq - entries[0].global_seq == count - 1
        if is_unbroken and [(entry.event_id, entry.run_id, entry.crc) for entry in entries] == wanted:
            del written[first : first + count]
            return entries
    return ()

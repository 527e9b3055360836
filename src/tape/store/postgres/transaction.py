"""A transaction block: its statements, and the entries it stages for the end."""

import json
import time
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import suppress
from typing import TypeVar

import anyio
import asyncpg

from tape.core.errors import TapeError, Unavailable
from tape.core.event import Entry
from tape.core.ids import Epoch, GlobalSeq, Seq
from tape.core.sequence import KeyRecord, Request
from tape.store.connection import Row
from tape.store.postgres.call import TYPES, Answer, Call
from tape.store.postgres.errors import LOST, is_lost, translate
from tape.store.postgres.group import independent
from tape.store.postgres.literal import call as calling
from tape.store.postgres.named import numbered
from tape.store.postgres.qualified import qualified
from tape.store.statements import statements

T = TypeVar("T")


async def shielded(statement: Awaitable[T]) -> T:
    """A statement to its end: one that is cancelled on its way leaves its connection behind in pieces."""
    with anyio.CancelScope(shield=True):
        return await statement
    raise AssertionError("a shield swallows nothing")


class PostgresTransaction:
    """A transaction in progress."""

    def __init__(self, connection: asyncpg.Connection, schema: str) -> None:
        self._connection = connection
        self._schema = schema
        self._staged: list[Request] = []
        self.outcomes: Sequence[Sequence[Entry]] = ()

    def append(self, request: Request) -> None:
        self._staged.append(request)

    async def undo(self) -> None:
        """Ends the transaction without a trace, if the connection is still there to say so."""
        with suppress(asyncpg.PostgresError, *LOST):  # a session that has ended has undone it itself
            if not is_lost(self._connection) and self._connection.is_in_transaction():
                await shielded(self._connection.execute("ROLLBACK"))

    async def lock(self) -> None:
        await self._said(self._connection.execute(qualified("SELECT tape_lock()", self._schema)))

    async def fetch(self, statement: str, parameters: Mapping[str, object]) -> Sequence[Row]:
        sql, values = numbered(statement, parameters)
        found = await self._said(self._connection.fetch(qualified(sql, self._schema), *values))
        return [tuple(row) for row in found]

    async def commit(self) -> None:
        """Numbers what was staged and commits, in one message: the lock never waits for this client."""
        calls = [Call(group) for group in independent(self._staged)]
        now_ms = time.time_ns() // 1_000_000
        steps = [self._step(number, call, now_ms) for number, call in enumerate(calls)]
        try:
            await shielded(self._connection.execute("; ".join([*steps, "COMMIT"])))
        except (asyncpg.PostgresError, *LOST) as error:
            raise _refusal(calls, error) from error
        try:
            self.outcomes = [entries for n, call in enumerate(calls) for entries in await self._answers(n, call)]
        except (asyncpg.PostgresError, *LOST) as error:
            raise Unavailable(f"the block is committed, but its answer was lost ({error})", "unknown") from error

    def _step(self, number: int, call: Call, now_ms: int) -> str:
        """A statement that appends, remembers the answer past the commit, and fails if anything was refused."""
        append, demand = (qualified(name, self._schema) for name in ("tape_append", "tape_demand"))
        appended = calling(append, TYPES, call.arguments(now_ms, -1, -1, None))
        answer = "json_build_array(a.base, a.ts, a.epoch, a.changes, a.lasts, a.depths, a.refused::text)::text"
        kept = f"set_config('tape.answer_{number}', {answer}, false)"
        return f"SELECT {kept}, {demand}({number}, a.refused) FROM {appended} a"  # noqa: S608 - quoted in literal.py

    async def _said(self, statement: Awaitable[T]) -> T:
        """What a statement answers; when that is lost, the block is undone."""
        try:
            return await shielded(statement)
        except (asyncpg.PostgresError, *LOST) as error:
            raise translate(error) from error

    async def _answers(self, number: int, call: Call) -> list[Sequence[Entry]]:
        asked = self._connection.fetchval(f"SELECT current_setting('tape.answer_{number}')")
        said = Answer(*json.loads(await shielded(asked)))
        pairs = zip(call.requests, call.outcomes(said), strict=True)
        return [await self._first_time(request, outcome, said.epoch) for request, outcome in pairs]

    async def _first_time(
        self, request: Request, outcome: Sequence[Entry] | KeyRecord | TapeError, epoch: Epoch
    ) -> Sequence[Entry]:
        """Its entries; those of a request that was in already are read, because a block refuses nothing it commits."""
        if isinstance(outcome, TapeError):
            raise outcome
        if not isinstance(outcome, KeyRecord):
            return outcome
        between = qualified(statements("postgres", "append.sql")["between"], self._schema)
        last = outcome.first + len(outcome.seqs) - 1
        rows = await shielded(self._connection.fetch(between, outcome.first, last))
        whole = len(rows) == len(outcome.seqs)
        return [Entry._make(row) for row in rows] if whole else outcome.entries(request.events, epoch)


def _refusal(calls: Sequence[Call], error: Exception) -> Exception:
    """The error of the first request that was refused."""
    if not isinstance(error, asyncpg.PostgresError) or error.sqlstate != "TP001":
        return translate(error, "unknown")
    said = json.loads(str(error.detail))
    call = calls[said["call"]]
    answer = Answer(GlobalSeq(0), 0, Epoch(0), 0, [Seq(0)] * len(call.runs), None, json.dumps(said["refused"]))
    return next(outcome for outcome in call.outcomes(answer) if isinstance(outcome, TapeError))

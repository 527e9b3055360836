"""A transaction on Postgres: its statements, and the requests that it appends as it commits."""

from collections.abc import Awaitable, Mapping, Sequence
from contextlib import suppress
from typing import TypeVar

import anyio
import asyncpg

from tape.core.errors import TapeError
from tape.core.event import Entry
from tape.core.sequence import AppendRequest
from tape.store.clock import now_ms
from tape.store.connection import Row
from tape.store.postgres.call import AppendCall, AppendResult, in_order
from tape.store.postgres.errors import LOST, is_lost, translate
from tape.store.postgres.group import independent
from tape.store.postgres.named import numbered
from tape.store.postgres.qualified import qualified
from tape.store.postgres.stored import stored_entries
from tape.store.statements import statements

T = TypeVar("T")


async def shielded(statement: Awaitable[T]) -> T:
    """Runs a statement to its end: asyncpg cannot reuse a connection whose statement was cancelled half-way."""
    with anyio.CancelScope(shield=True):
        return await statement
    raise AssertionError("unreachable")


class PostgresTransaction:
    """A transaction in progress; the append lock is taken for its last two statements only."""

    def __init__(self, connection: asyncpg.Connection, schema: str) -> None:
        self._connection = connection
        self._schema = schema
        self._staged: list[AppendRequest] = []
        self.outcomes: Sequence[Sequence[Entry]] = ()

    def append(self, request: AppendRequest) -> None:
        self._staged.append(request)

    async def rollback(self) -> None:
        with suppress(asyncpg.PostgresError, *LOST):  # a session that has ended has rolled back itself
            if not is_lost(self._connection) and self._connection.is_in_transaction():
                await shielded(self._connection.execute("ROLLBACK"))

    async def lock(self) -> None:
        await self._run(self._connection.execute(qualified("SELECT tape_lock()", self._schema)))

    async def fetch(self, statement: str, parameters: Mapping[str, object]) -> Sequence[Row]:
        sql, values = numbered(statement, parameters)
        found = await self._run(self._connection.fetch(qualified(sql, self._schema), *values))
        return [tuple(row) for row in found]

    async def commit(self) -> None:
        """Appends the staged requests, then commits."""
        groups = [await self._append(group) for group in independent(self._staged)]
        try:
            await shielded(self._connection.execute("COMMIT"))
        except (asyncpg.PostgresError, *LOST) as error:
            raise translate(error, "unknown") from error
        self.outcomes = [entries for group in groups for entries in group]

    async def _append(self, requests: Sequence[AppendRequest]) -> list[Sequence[Entry]]:
        """The entries of each request; raises the error of the first one that is refused."""
        if not requests:
            return []
        call = AppendCall(requests)
        sql = statements("postgres", "append.sql")
        arguments = call.arguments(now_ms(), -1, -1, None)
        row = await self._run(self._connection.fetchrow(qualified(sql["append"], self._schema), *arguments))
        result = AppendResult(*row)
        if result.refused is None:
            return call.entries(result)
        between = qualified(sql["between"], self._schema)
        stored: dict[int, Sequence[Entry]] = {}
        for index, verdict in call.verdicts(result.refused).items():
            if isinstance(verdict, TapeError):
                raise verdict
            entries = stored_entries(self._connection, between, requests[index], verdict, result.epoch)
            stored[index] = await self._run(entries)
        others = [request for index, request in enumerate(requests) if index not in stored]
        return in_order(len(requests), stored, await self._append(others))

    async def _run(self, statement: Awaitable[T]) -> T:
        """The answer to a statement; when that is lost, the server rolls back."""
        try:
            return await shielded(statement)
        except (asyncpg.PostgresError, *LOST) as error:
            raise translate(error) from error

"""Postgres as a pool to read with, one connection to append on, and one to listen on."""

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final

import anyio
import asyncpg

from tape.core.ids import GlobalSeq
from tape.core.ports import Outcome, Wake
from tape.core.sequence import Request
from tape.store.connection import Query, Row
from tape.store.postgres.append import Appender
from tape.store.postgres.block import Block, undisturbed
from tape.store.postgres.errors import LOST, translate
from tape.store.postgres.listen import Listener
from tape.store.postgres.named import numbered

POLL_S: Final = 5.0
DEAF_POLL_S: Final = 0.5
_PARAMETER: Final = re.compile(r"\$(\d+)")


class Database:
    """One database: what is read comes from a snapshot, what is written is numbered under one lock."""

    def __init__(self, pool: asyncpg.Pool, appender: Appender, listener: Listener, wake: Wake) -> None:
        self._pool = pool
        self._appender = appender
        self._listener = listener
        self._wake = wake

    async def snapshot(self, *queries: Query) -> Sequence[Sequence[Row]]:
        try:
            if len(queries) == 1:
                sql, values = numbered(queries[0].sql, queries[0].parameters)
                return [await undisturbed(self._pool.fetch(sql, *values))]
            sql, values, page = _together(queries)
            rows = await undisturbed(self._pool.fetch(sql, *values))
        except (asyncpg.PostgresError, *LOST) as error:
            raise translate(error) from error
        width = len(queries) - (page is not None)
        found = [column or () for column in rows[0][:width]]
        if page is not None:
            found.insert(page, [row[width:-1] for row in rows if row[-1] is not None])
        return found

    async def append(self, requests: Sequence[Request]) -> Sequence[Outcome]:
        return await self._appender.append(requests)

    async def wait(self, beyond: GlobalSeq) -> None:
        with anyio.move_on_after(POLL_S if self._listener.is_listening else DEAF_POLL_S):
            await self._wake.wait_beyond(beyond)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Block]:
        async with self._acquired() as connection:
            block = Block(connection)
            try:
                await block.begin()
                yield block
                await block.commit()
            except BaseException:
                await block.undo()
                raise

    @asynccontextmanager
    async def _acquired(self) -> AsyncIterator[asyncpg.Connection]:
        try:
            connection = await self._pool.acquire()
        except (asyncpg.PostgresError, *LOST) as error:
            raise translate(error) from error
        try:
            yield connection
        finally:
            with suppress(asyncpg.PostgresError, *LOST):  # the pool drops what it cannot take back
                await self._pool.release(connection)


def _together(queries: Sequence[Query]) -> tuple[str, list[object], int | None]:
    """Several queries as one statement, so that one snapshot and one round trip serve them all.

    Each is a column with its rows as one array. Only the one with a budget, whose number is returned last, has its rows
    as rows behind these columns: to put a page into an array and to take it out again costs more than to read it.
    """
    columns: list[str] = []
    values: list[object] = []
    page, paged = None, ""
    for number, query in enumerate(queries):
        sql, own = numbered(query.sql, query.parameters)
        shifted = _shifted(sql, len(values))
        values += own
        if query.budget is None:
            columns.append(f"(SELECT array_agg(q) FROM ({shifted}) q)")  # noqa: S608 - the text of our own statements
        else:
            page, paged = number, _paged(shifted, query.budget)
    if page is None:
        return f"SELECT {', '.join(columns)}", values, None
    firsts = [f"CASE WHEN coalesce(p.before, 0) = 0 THEN {column} END" for column in columns]
    joined = f"SELECT {', '.join([*firsts, 'p.*'])} FROM (SELECT 1) AS one LEFT JOIN {paged} AS p ON true"  # noqa: S608
    return f"{joined} ORDER BY p.global_seq", values, page


def _paged(sql: str, budget: int) -> str:
    """As many of a query's rows as begin before their payloads have used up the budget."""
    size = "coalesce(octet_length(q.payload_json), octet_length(q.payload_bytes), 0)"
    weighed = f"SELECT q.*, sum({size}) OVER (ORDER BY q.global_seq) - {size} AS before FROM ({sql}) q"  # noqa: S608
    return f"(SELECT w.* FROM ({weighed}) w WHERE w.before < {budget})"  # noqa: S608


def _shifted(sql: str, by: int) -> str:
    return _PARAMETER.sub(lambda found: f"${int(found[1]) + by}", sql) if by else sql

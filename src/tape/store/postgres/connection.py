"""Postgres as a pool for reads and transactions, one connection that appends, and one that listens."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Final

import anyio
import asyncpg

from tape.core.ids import GlobalSeq
from tape.core.ports import AppendOutcome, Wake
from tape.core.sequence import AppendRequest
from tape.store.connection import Query, Row
from tape.store.postgres.append import Appender
from tape.store.postgres.combined import combined
from tape.store.postgres.errors import LOST, is_lost, translate
from tape.store.postgres.journal_wake import JournalWake
from tape.store.postgres.named import numbered
from tape.store.postgres.qualified import qualified
from tape.store.postgres.retry import with_retry
from tape.store.postgres.transaction import PostgresTransaction, shielded

POLL_S: Final = 5.0
POLL_ALONE_S: Final = 0.5


class Database:
    """One database: queries read a snapshot, appends are numbered under one lock."""

    def __init__(self, pool: asyncpg.Pool, appender: Appender, own_wake: JournalWake, wake: Wake, schema: str) -> None:
        self._pool = pool
        self._appender = appender
        self._own_wake = own_wake
        self._wake = wake
        self._schema = schema
        self._cached: asyncpg.Connection | None = None
        self._waiting = 0

    async def snapshot(self, *queries: Query) -> Sequence[Sequence[Row]]:
        if len(queries) == 1:
            sql, values = numbered(queries[0].sql, queries[0].parameters)
            return [await self._fetch(qualified(sql, self._schema), values)]
        statement = combined(tuple((query.sql, query.budget) for query in queries))
        named = zip(queries, statement.names, strict=True)
        values = [query.parameters[name] for query, names in named for name in names]
        return statement.split(await self._fetch(qualified(statement.sql, self._schema), values))

    async def execute(self, query: Query) -> Sequence[Row]:
        """Runs one statement that writes, as a transaction of its own.

        After a lost connection it runs again, so the statement must do nothing the second time.
        """
        sql, values = numbered(query.sql, query.parameters)
        return await self._fetch(qualified(sql, self._schema), values)

    async def _fetch(self, sql: str, values: Sequence[object]) -> list[asyncpg.Record]:
        try:
            return await shielded(with_retry(partial(self._read, sql, values), self._drop_idle))
        except (asyncpg.PostgresError, *LOST) as error:
            raise translate(error) from error

    async def _read(self, sql: str, values: Sequence[object]) -> list[asyncpg.Record]:
        connection = await self._acquire()
        try:
            rows: list[asyncpg.Record] = await connection.fetch(sql, *values)
        finally:
            await self._release(connection)
        return rows

    async def _drop_idle(self) -> None:
        """Makes the next statement connect anew: where one connection is lost, the others may be, too."""
        await self._pool.expire_connections()
        with suppress(asyncpg.PostgresError, *LOST):  # the pool drops what it cannot take back
            await self.close()

    async def _acquire(self) -> asyncpg.Connection:
        """The cached connection, if it is free: to acquire one from the pool takes as long as a short read."""
        connection, self._cached = self._cached, None
        if connection is not None and not is_lost(connection):
            return connection
        if connection is not None:
            await self._pool.release(connection)
        self._waiting += 1
        try:
            return await self._pool.acquire()
        finally:
            self._waiting -= 1

    async def _release(self, connection: asyncpg.Connection) -> None:
        is_idle = not is_lost(connection) and not connection.is_in_transaction()
        if is_idle and self._cached is None and not self._waiting:
            self._cached = connection
        else:
            await self._pool.release(connection)

    async def close(self) -> None:
        """Releases the cached connection, for which closing the pool would wait."""
        connection, self._cached = self._cached, None
        if connection is not None:
            await self._pool.release(connection)

    async def append(self, requests: Sequence[AppendRequest]) -> Sequence[AppendOutcome]:
        return await self._appender.append(requests)

    async def wait(self, beyond: GlobalSeq) -> None:
        with anyio.move_on_after(POLL_S if self._own_wake.is_listening else POLL_ALONE_S):
            await self._wake.wait_beyond(beyond)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[PostgresTransaction]:
        async with self._begun() as transaction:
            try:
                yield transaction
                await transaction.commit()
            except BaseException:
                await transaction.rollback()
                raise

    @asynccontextmanager
    async def _begun(self) -> AsyncIterator[PostgresTransaction]:
        """A transaction, begun on a new connection if the first one was lost."""
        try:
            connection = await shielded(with_retry(self._begin, self._drop_idle))
        except (asyncpg.PostgresError, *LOST) as error:
            raise translate(error) from error
        try:
            yield PostgresTransaction(connection, self._schema)
        finally:
            with suppress(asyncpg.PostgresError, *LOST):  # the pool drops what it cannot take back
                await self._release(connection)

    async def _begin(self) -> asyncpg.Connection:
        connection = await self._acquire()
        try:
            await connection.execute("BEGIN")
        except BaseException:
            with suppress(asyncpg.PostgresError, *LOST):
                await self._release(connection)
            raise
        return connection

"""Postgres as a pool to read with, one connection to append on, and one to listen on."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final

import anyio
import asyncpg

from tape.core.ids import GlobalSeq
from tape.core.ports import AppendOutcome, Wake
from tape.core.sequence import Request
from tape.store.connection import Query, Row
from tape.store.postgres.append import Appender
from tape.store.postgres.errors import LOST, is_lost, translate
from tape.store.postgres.listen import Listener
from tape.store.postgres.named import numbered
from tape.store.postgres.qualified import qualified
from tape.store.postgres.together import together
from tape.store.postgres.transaction import PostgresTransaction, shielded

POLL_S: Final = 5.0
DEAF_POLL_S: Final = 0.5


class Database:
    """One database: what is read comes from a snapshot, what is written is numbered under one lock."""

    def __init__(self, pool: asyncpg.Pool, appender: Appender, listener: Listener, wake: Wake, schema: str) -> None:
        self._pool = pool
        self._appender = appender
        self._listener = listener
        self._wake = wake
        self._schema = schema
        self._cached: asyncpg.Connection | None = None
        self._waiting = 0

    async def snapshot(self, *queries: Query) -> Sequence[Sequence[Row]]:
        if len(queries) == 1:
            sql, values = numbered(queries[0].sql, queries[0].parameters)
            return [await self._fetch(qualified(sql, self._schema), values)]
        reading = together(tuple((query.sql, query.budget, query.width) for query in queries))
        values = [query.parameters[name] for query, names in zip(queries, reading.names, strict=True) for name in names]
        return reading.apart(await self._fetch(qualified(reading.sql, self._schema), values))

    async def _fetch(self, sql: str, values: Sequence[object]) -> list[asyncpg.Record]:
        try:
            return await shielded(self._read(sql, values))
        except (asyncpg.PostgresError, *LOST) as error:
            raise translate(error) from error

    async def _read(self, sql: str, values: Sequence[object]) -> list[asyncpg.Record]:
        """What a query answers; if its connection turns out to be lost, a new one is asked once more."""
        try:
            return await self._read_once(sql, values)
        except TimeoutError:
            raise
        except LOST:
            await self._drop_idle()
            return await self._read_once(sql, values)

    async def _read_once(self, sql: str, values: Sequence[object]) -> list[asyncpg.Record]:
        connection = await self._taken()
        try:
            rows: list[asyncpg.Record] = await connection.fetch(sql, *values)
        finally:
            await self._give_back(connection)
        return rows

    async def _drop_idle(self) -> None:
        """Has the next statement connect anew: where one connection is lost, those beside it may be, too."""
        await self._pool.expire_connections()
        with suppress(asyncpg.PostgresError, *LOST):  # the pool drops what it cannot take back
            await self.close()

    async def _taken(self) -> asyncpg.Connection:
        """The connection at hand, if nobody has it: to go to the pool and back takes as long as a short read."""
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

    async def _give_back(self, connection: asyncpg.Connection) -> None:
        is_idle = not is_lost(connection) and not connection.is_in_transaction()
        if is_idle and self._cached is None and not self._waiting:
            self._cached = connection
        else:
            await self._pool.release(connection)

    async def close(self) -> None:
        """Gives the pool what is at hand, which it would wait for."""
        connection, self._cached = self._cached, None
        if connection is not None:
            await self._pool.release(connection)

    async def append(self, requests: Sequence[Request]) -> Sequence[AppendOutcome]:
        return await self._appender.append(requests)

    async def wait(self, beyond: GlobalSeq) -> None:
        with anyio.move_on_after(POLL_S if self._listener.is_listening else DEAF_POLL_S):
            await self._wake.wait_beyond(beyond)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[PostgresTransaction]:
        async with self._begun() as block:
            try:
                yield block
                await block.commit()
            except BaseException:
                await block.undo()
                raise

    @asynccontextmanager
    async def _begun(self) -> AsyncIterator[PostgresTransaction]:
        """A transaction, begun on a new connection if the first one turns out to be lost."""
        try:
            connection = await shielded(self._in_transaction())
        except (asyncpg.PostgresError, *LOST) as error:
            raise translate(error) from error
        try:
            yield PostgresTransaction(connection, self._schema)
        finally:
            with suppress(asyncpg.PostgresError, *LOST):  # the pool drops what it cannot take back
                await self._give_back(connection)

    async def _in_transaction(self) -> asyncpg.Connection:
        try:
            return await self._begin_once()
        except TimeoutError:
            raise
        except LOST:
            await self._drop_idle()
            return await self._begin_once()

    async def _begin_once(self) -> asyncpg.Connection:
        connection = await self._taken()
        try:
            await connection.execute("BEGIN")
        except BaseException:
            with suppress(asyncpg.PostgresError, *LOST):
                await self._give_back(connection)
            raise
        return connection

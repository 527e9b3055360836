"""The outbox in a Postgres database: a pool for statements, and a connection that listens."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import Any, Final, NamedTuple

import anyio
import asyncpg

from tape.core.errors import Unavailable
from tape.store.caller_connection import check_schema, in_schema, moved
from tape.store.clock import now_ms
from tape.store.connection import Row
from tape.store.outbox.database import RunStatement
from tape.store.postgres.errors import LOST, REFUSED, error_text, refused, translate
from tape.store.postgres.migrate import BOTH_FIRST
from tape.store.postgres.named import numbered
from tape.store.postgres.outbox_wake import OutboxWake
from tape.store.postgres.owners import check_owners, created
from tape.store.postgres.qualified import PIN, SEARCH_PATH
from tape.store.postgres.retry import with_retry
from tape.store.statements import migrations
from tape.store.timeouts import Timeouts
from tape.telemetry import log

SETTINGS: Final = {"application_name": "tape-outbox", "lock_timeout": "10s", "jit": "off"}
PINNED: Final = {**SETTINGS, "search_path": SEARCH_PATH}
TIMEOUTS: Final = Timeouts(connect_s=10.0, answer_s=65.0)

Connect = Callable[[], Awaitable[asyncpg.Connection]]


class _Sql(NamedTuple):
    lock: str
    has_schema: str
    create_schema: str
    has_steps: str
    create_steps: str
    applied: str
    record: str


class ConnectionMode(NamedTuple):
    """How to connect, the search path for handlers, and whether there is a pooler.

    Our own statements search only pg_catalog: a direct connection does so from its start, one of a pooler for each
    transaction, because other clients share it.
    """

    options: dict[str, Any]
    path: str
    is_pooled: bool


class LentConnections:
    """The connections that handlers have used: only these are reset, our own statements leave nothing behind."""

    def __init__(self) -> None:
        self._pids: set[int] = set()

    def add(self, connection: asyncpg.Connection) -> None:
        self._pids.add(connection.get_server_pid())

    async def reset(self, connection: asyncpg.Connection) -> None:
        if connection.get_server_pid() in self._pids:
            self._pids.discard(connection.get_server_pid())
            await connection.reset()


class PostgresSteps:
    """The operations of an outbox; each is one call of a function."""

    async def claim(self, run: RunStatement, asked: Mapping[str, Any]) -> list[Row]:
        return await run("claim", **asked)

    async def fan_out(self, run: RunStatement, limit: int) -> None:
        await run("fan_out", most=limit)

    async def settle(self, run: RunStatement, rows: Sequence[Mapping[str, Any]]) -> list[Row]:
        return await run("settle", settled=json.dumps(rows))

    async def retire(self, run: RunStatement, asked: Mapping[str, Any]) -> list[Row]:
        return await run("retire", **asked)

    def check_partitions(self) -> None:
        return


class PostgresOutbox:
    """The database of an outbox."""

    steps: Final = PostgresSteps()

    def __init__(
        self, pool: asyncpg.Pool, lent: LentConnections, connect: Connect, schema: str, mode: ConnectionMode
    ) -> None:
        self._pool = pool
        self._lent = lent
        self._connect = connect
        self._mode = mode
        self.schema = schema

    def wake(self, channels: tuple[str, ...]) -> OutboxWake:
        return OutboxWake(self._connect, self._notify, channels, TIMEOUTS)

    async def _notify(self, channel: str) -> None:
        await self._pool.execute("SELECT pg_catalog.pg_notify($1, '')", channel)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[asyncpg.Connection]:
        """A connection in a transaction that commits when the caller leaves it; errors are the driver's own."""
        async with self._begun() as connection:
            self._lent.add(connection)
            if not self._mode.is_pooled:
                await connection.execute("SELECT pg_catalog.set_config('search_path', $1, true)", self._mode.path)
            yield connection

    @asynccontextmanager
    async def own(self) -> AsyncIterator[asyncpg.Connection]:
        """The same for statements of this package: the driver's errors become ours."""
        with _translated():
            async with self._begun() as connection:
                if self._mode.is_pooled:
                    await connection.execute(PIN)
                yield connection

    @asynccontextmanager
    async def once(self) -> AsyncIterator[asyncpg.Connection]:
        """A connection without a transaction, unless a pooler might send each statement to another server."""
        if self._mode.is_pooled:
            async with self.own() as connection:
                yield connection
            return
        with _translated():
            async with self._acquired() as connection:
                yield connection

    @asynccontextmanager
    async def _acquired(self) -> AsyncIterator[asyncpg.Connection]:
        connection = await self._pool.acquire()
        try:
            yield connection
        finally:
            await self._release(connection)

    async def _release(self, connection: asyncpg.Connection) -> None:
        with suppress(asyncpg.PostgresError, *LOST), anyio.CancelScope(shield=True):
            await self._pool.release(connection, timeout=TIMEOUTS.close_s)

    @asynccontextmanager
    async def _begun(self) -> AsyncIterator[asyncpg.Connection]:
        """A transaction, begun on a new connection if the first one was lost."""
        connection, transaction = await with_retry(self._begin, self._pool.expire_connections)
        try:
            yield connection
        except BaseException:
            with suppress(asyncpg.PostgresError, *LOST), anyio.CancelScope(shield=True):
                await transaction.rollback()
            raise
        else:
            with anyio.CancelScope(shield=True):
                await transaction.commit()
        finally:
            await self._release(connection)

    async def _begin(self) -> tuple[asyncpg.Connection, asyncpg.transaction.Transaction]:
        connection = await self._pool.acquire()
        try:
            transaction = connection.transaction()
            await transaction.start()
        except BaseException:
            await self._release(connection)
            raise
        return connection, transaction


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except (asyncpg.PostgresError, *LOST) as error:
        raise translate(error, "unknown") from error


@asynccontextmanager
async def open_outbox(
    url: str, *, schema: str, listen_url: str | None = None, connections: int = 12
) -> AsyncIterator[PostgresOutbox]:
    """The outbox of a database, which must have been migrated."""
    check_schema(schema)
    lent = LentConnections()
    try:
        mode = await _mode(url)
        pool = await asyncpg.create_pool(url, min_size=0, max_size=connections, reset=lent.reset, **mode.options)
    except REFUSED as error:
        raise refused(error) from error
    except (asyncpg.TooManyConnectionsError, *LOST) as error:
        raise Unavailable(f"cannot connect to Postgres ({error_text(error)})") from error
    try:
        connect = partial(asyncpg.connect, listen_url or url, timeout=TIMEOUTS.connect_s, statement_cache_size=0)
        yield PostgresOutbox(pool, lent, connect, schema, mode)
    finally:
        with suppress(asyncpg.PostgresError, *LOST), anyio.move_on_after(TIMEOUTS.close_s, shield=True):
            await pool.close()


async def _mode(url: str) -> ConnectionMode:
    """Finds out how to connect: a pooler takes no settings and keeps no prepared statements.

    A pooler that takes settings and ignores them shows in the search path.
    """
    plain: dict[str, Any] = {"statement_cache_size": 0, "timeout": TIMEOUTS.connect_s}
    direct: dict[str, Any] = {"server_settings": PINNED, "timeout": TIMEOUTS.connect_s}
    path = await _path(url, plain)
    try:
        is_pooled = await _path(url, direct) != SEARCH_PATH
    except asyncpg.ProtocolViolationError as error:
        log.warning("outbox.pooled", reason=error_text(error))
        return ConnectionMode(plain, path, is_pooled=True)
    return ConnectionMode(direct, path, is_pooled=is_pooled)


async def _path(url: str, options: dict[str, Any]) -> str:
    connection = await asyncpg.connect(url, **options)
    try:
        return str(await connection.fetchval("SELECT pg_catalog.current_setting('search_path')"))
    finally:
        connection.terminate()


async def migrate_outbox(url: str, schema: str) -> tuple[str, ...]:
    """Brings the schema of the outbox up to date, all or nothing, and returns the steps that were missing."""
    try:
        connection = await asyncpg.connect(url, server_settings=SETTINGS, timeout=TIMEOUTS.connect_s)
    except REFUSED as error:
        raise refused(error) from error
    except (asyncpg.TooManyConnectionsError, *LOST) as error:
        raise Unavailable(f"cannot connect to Postgres ({error_text(error)})") from error
    try:
        try:
            return await _migrated(connection, check_schema(schema))
        except BOTH_FIRST:
            return await _migrated(connection, schema)
    except (asyncpg.PostgresError, *LOST) as error:
        raise translate(error, "unknown") from error
    finally:
        connection.terminate()


async def _migrated(connection: asyncpg.Connection, schema: str) -> tuple[str, ...]:
    async with connection.transaction():
        await connection.execute(PIN)
        return tuple(await _apply_missing(connection, schema))


async def _apply_missing(connection: asyncpg.Connection, schema: str) -> list[str]:
    sql = _Sql(**in_schema("postgres", "outbox_migrate.sql", schema))
    if not await connection.fetchval(sql.has_schema):
        await connection.execute(sql.create_schema)
    has_steps = await connection.fetchval(sql.has_steps)
    await check_owners(connection, schema, ())
    if not has_steps:
        await connection.execute(sql.create_steps)
    await connection.execute(sql.lock)
    done = {row[0] for row in await connection.fetch(sql.applied)}
    missing = [step for step in migrations("postgres", "outbox") if step[0] not in done]
    await check_owners(connection, schema, created(script for _, _, script in missing))
    for number, name, script in missing:
        await connection.execute(moved("postgres", script, schema))
        text, values = numbered(sql.record, {"number": number, "name": name, "now_ms": now_ms()})
        await connection.execute(text, *values)
    return [f"{number:04} {name}" for number, name, _ in missing]

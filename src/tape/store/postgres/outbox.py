"""The outbox in somebody's Postgres: a pool to work with, and a connection of its own to listen on."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import Any, Final, NamedTuple

import anyio
import asyncpg

from tape.core.errors import Unavailable
from tape.store.clock import now_ms
from tape.store.foreign import check_schema, in_schema, moved
from tape.store.patience import Patience
from tape.store.postgres.channels import Channels
from tape.store.postgres.errors import LOST, said, translate
from tape.store.postgres.named import numbered
from tape.store.statements import migrations
from tape.telemetry import log

SETTINGS: Final = {"application_name": "tape-outbox", "lock_timeout": "10s", "jit": "off"}
PATIENCE: Final = Patience(connect_s=10.0, answer_s=65.0)

Connect = Callable[[], Awaitable[asyncpg.Connection]]


class _Sql(NamedTuple):
    lock: str
    has_schema: str
    create_schema: str
    has_steps: str
    create_steps: str
    applied: str
    record: str


class Lent:
    """Which connections somebody else has had: only they are put in order, our own statements leave nothing behind."""

    def __init__(self) -> None:
        self._pids: set[int] = set()

    def add(self, connection: asyncpg.Connection) -> None:
        self._pids.add(connection.get_server_pid())

    async def reset(self, connection: asyncpg.Connection) -> None:
        if connection.get_server_pid() in self._pids:
            self._pids.discard(connection.get_server_pid())
            await connection.reset()


class PostgresOutbox:
    """The database an outbox lives in."""

    dialect: Final = "postgres"

    def __init__(self, pool: asyncpg.Pool, lent: Lent, connect: Connect, schema: str, *, is_pooled: bool) -> None:
        self._pool = pool
        self._lent = lent
        self._connect = connect
        self._is_pooled = is_pooled
        self.schema = schema

    def wake(self, channels: tuple[str, ...]) -> Channels:
        """What hears of new rows."""
        return Channels(self._connect, self._notify, channels, PATIENCE)

    async def _notify(self, channel: str) -> None:
        await self._pool.execute("SELECT pg_notify($1, '')", channel)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[asyncpg.Connection]:
        """A connection in a transaction that commits with the block; its errors are the driver's own."""
        async with self._acquired() as connection:
            self._lent.add(connection)
            async with _begun(connection):
                yield connection

    @asynccontextmanager
    async def own(self) -> AsyncIterator[asyncpg.Connection]:
        """The same for our own statements: the driver's errors become ours."""
        with _translated():
            async with self._acquired() as connection, _begun(connection):
                yield connection

    @asynccontextmanager
    async def once(self) -> AsyncIterator[asyncpg.Connection]:
        """Without a transaction around them, unless a pooler might give each to another server."""
        if self._is_pooled:
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
            with suppress(asyncpg.PostgresError, *LOST), anyio.CancelScope(shield=True):
                await self._pool.release(connection, timeout=PATIENCE.close_s)


@asynccontextmanager
async def _begun(connection: asyncpg.Connection) -> AsyncIterator[None]:
    transaction = connection.transaction()
    await transaction.start()
    try:
        yield
    except BaseException:
        with suppress(asyncpg.PostgresError, *LOST), anyio.CancelScope(shield=True):
            await transaction.rollback()
        raise
    with anyio.CancelScope(shield=True):
        await transaction.commit()


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
    lent = Lent()
    try:
        options = await _options(url)
        pool = await asyncpg.create_pool(url, min_size=0, max_size=connections, reset=lent.reset, **options)
    except LOST as error:
        raise Unavailable(f"cannot connect to Postgres ({said(error)})") from error
    try:
        connect = partial(asyncpg.connect, listen_url or url, timeout=PATIENCE.connect_s, statement_cache_size=0)
        yield PostgresOutbox(pool, lent, connect, schema, is_pooled="server_settings" not in options)
    finally:
        with suppress(asyncpg.PostgresError, *LOST), anyio.move_on_after(PATIENCE.close_s, shield=True):
            await pool.close()


async def _options(url: str) -> dict[str, Any]:
    """How to connect: a pooler takes no settings, and a statement prepared through it may be gone the next time."""
    direct: dict[str, Any] = {"server_settings": SETTINGS, "timeout": PATIENCE.connect_s}
    try:
        (await asyncpg.connect(url, **direct)).terminate()
    except asyncpg.ProtocolViolationError as error:
        log.warning("outbox.pooled", reason=said(error))
        return {"statement_cache_size": 0, "timeout": PATIENCE.connect_s}
    return direct


async def migrate_outbox(url: str, schema: str) -> tuple[str, ...]:
    """Brings the line `outbox` up to date, all or nothing, and says which steps were missing."""
    try:
        connection = await asyncpg.connect(url, server_settings=SETTINGS, timeout=PATIENCE.connect_s)
    except LOST as error:
        raise Unavailable(f"cannot connect to Postgres ({said(error)})") from error
    try:
        async with connection.transaction():
            return tuple(await _apply_missing(connection, check_schema(schema)))
    except (asyncpg.PostgresError, *LOST) as error:
        raise translate(error, "unknown") from error
    finally:
        connection.terminate()


async def _apply_missing(connection: asyncpg.Connection, schema: str) -> list[str]:
    sql = _Sql(**in_schema("postgres", "outbox_migrate.sql", schema))
    await connection.execute(sql.lock)
    if not await connection.fetchval(sql.has_schema):
        await connection.execute(sql.create_schema)
    if not await connection.fetchval(sql.has_steps):
        await connection.execute(sql.create_steps)
    done = {row[0] for row in await connection.fetch(sql.applied)}
    missing = [step for step in migrations("postgres", "outbox") if step[0] not in done]
    for number, name, script in missing:
        await connection.execute(moved("postgres", script, schema))
        text, values = numbered(sql.record, {"number": number, "name": name, "now_ms": now_ms()})
        await connection.execute(text, *values)
    return [f"{number:04} {name}" for number, name, _ in missing]

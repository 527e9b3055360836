"""The Postgres store: a journal, its runs and its cells in one database."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Final

import asyncpg

from tape.core.background import background
from tape.core.errors import Unavailable, UsageError
from tape.core.ids import Epoch
from tape.core.ports import Wake
from tape.store.audit import Audit
from tape.store.cells import Cells
from tape.store.epoch import begin_epoch
from tape.store.journal import Journal
from tape.store.postgres.append import Appender
from tape.store.postgres.block import Block
from tape.store.postgres.connection import Database
from tape.store.postgres.errors import LOST, translate
from tape.store.postgres.listen import Listener
from tape.store.postgres.migrate import Migrated, check_durability, migrate
from tape.store.retention import Retention
from tape.store.runs import Runs

SETTINGS: Final = {
    "application_name": "tape",
    "lock_timeout": "10s",
    "statement_timeout": "60s",
    "idle_in_transaction_session_timeout": "2s",
    "jit": "off",
    "default_transaction_isolation": "read committed",
    "standard_conforming_strings": "on",
    "plan_cache_mode": "force_generic_plan",  # every plan is checked by a test; planning was a sixth of a short append
}
POOL: Final = 8
CONNECT_S: Final = 10.0
COMMAND_S: Final = 65.0  # a peer that no longer answers; the server itself gives up sooner


class PostgresStore:
    """What one database holds."""

    def __init__(self, database: Database, migrated: Migrated) -> None:
        self._database = database
        self.epoch, self.applied = migrated
        self.journal = Journal(database, "postgres", self.epoch)
        self.cells = Cells(database, "postgres")
        self.retention = Retention(database, "postgres")
        self.runs = Runs(database, "postgres")
        self.audit = Audit(database, "postgres")

    def transaction(self) -> AbstractAsyncContextManager[Block]:
        return self._database.transaction()

    async def new_epoch(self) -> Epoch:
        self.epoch = await begin_epoch(self._database, "postgres")
        self.journal.epoch = self.epoch
        return self.epoch


@asynccontextmanager
async def open_store(
    url: str, *, listen_url: str | None = None, unsafe_durability: bool = False, wake: Wake | None = None
) -> AsyncIterator[PostgresStore]:
    """The store in a database, its schema brought up to date."""
    connect = _connector(url)
    migrated = await _prepared(connect, unsafe_durability)
    appender = Appender(connect)
    listener = Listener(_connector(listen_url or url), own_process=lambda: appender.process)
    options = {"server_settings": SETTINGS, "command_timeout": COMMAND_S, "reset": _reset}
    async with asyncpg.create_pool(url, min_size=0, max_size=POOL, **options) as pool:
        try:
            async with background(listener.run):
                yield PostgresStore(Database(pool, appender, listener, wake or listener), migrated)
        finally:
            await appender.close()


async def _prepared(connect: Callable[[], Awaitable[asyncpg.Connection]], unsafe_durability: bool) -> Migrated:
    try:
        connection = await connect()
    except asyncpg.ProtocolViolationError as error:
        raise UsageError(
            f"Postgres was not reached directly, but through a pooler ({error}); give its own URL"
        ) from error
    except LOST as error:
        raise Unavailable(f"cannot connect to Postgres ({error})") from error
    try:
        await check_durability(connection, unsafe_durability)
        return await migrate(connection)
    except asyncpg.PostgresError as error:
        raise translate(error) from error
    finally:
        await connection.close()


async def _reset(connection: asyncpg.Connection) -> None:
    """Undoes a transaction that was cancelled; nothing else is left behind, and asking would double each read."""
    if connection.is_in_transaction():
        await connection.execute("ROLLBACK")


def _connector(url: str) -> Callable[[], Awaitable[asyncpg.Connection]]:
    return partial(asyncpg.connect, url, server_settings=SETTINGS, timeout=CONNECT_S, command_timeout=COMMAND_S)

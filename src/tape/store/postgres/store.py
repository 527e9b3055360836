"""The Postgres store: a journal, its runs and its cells in one database."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import partial
from typing import Final, TypeAlias

import anyio
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
from tape.store.postgres.connection import Database
from tape.store.postgres.errors import LOST, REFUSED, error_text, refused, translate
from tape.store.postgres.journal_wake import JournalWake
from tape.store.postgres.migrate import Migrated, check_durability, check_path, enter, migrate
from tape.store.postgres.page_claims import PageClaims
from tape.store.postgres.qualified import SEARCH_PATH
from tape.store.postgres.transaction import PostgresTransaction
from tape.store.reactions import Reactions
from tape.store.retention import Retention
from tape.store.runs import Runs
from tape.store.tasks import Tasks
from tape.store.timeouts import Timeouts

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
PINNED: Final = {**SETTINGS, "search_path": SEARCH_PATH}
BY_KEYS: Final = {**SETTINGS, "enable_seqscan": "off"}  # Postgres keeps plans that it made for empty tables
POOL: Final = 8
TIMEOUTS: Final = Timeouts(connect_s=10.0, answer_s=65.0)  # statement_timeout ends a statement sooner

Connect: TypeAlias = Callable[[], Awaitable[asyncpg.Connection]]


class PostgresStore:
    """The parts of a store in one database."""

    def __init__(self, database: Database, migrated: Migrated) -> None:
        self._database = database
        epoch, self.applied, _ = migrated
        self.journal = Journal(database, "postgres", epoch)
        self.cells = Cells(database, "postgres")
        claims = PageClaims(database)
        self.reactions = Reactions(database, "postgres", claims)
        self.tasks = Tasks(database, "postgres", claims)
        self.retention = Retention(database, "postgres", claims)
        self.runs = Runs(database, "postgres")
        self.audit = Audit(database, "postgres")

    @property
    def epoch(self) -> Epoch:
        return self.journal.epoch

    def transaction(self) -> AbstractAsyncContextManager[PostgresTransaction]:
        return self._database.transaction()

    async def new_epoch(self) -> Epoch:
        self.journal.observe_epoch(await begin_epoch(self._database, "postgres"))
        return self.epoch


@asynccontextmanager
async def open_store(
    url: str,
    *,
    listen_url: str | None = None,
    unsafe_durability: bool = False,
    wake: Wake | None = None,
    timeouts: Timeouts = TIMEOUTS,
    must_exist: bool = False,
) -> AsyncIterator[PostgresStore]:
    """The store in a database, its schema brought up to date; tables are created unless they `must_exist`."""
    check = _accept if unsafe_durability else check_durability
    bring_up_to_date = partial(migrate, must_exist=must_exist)
    migrated = await _prepared(partial(_connected, url, timeouts, check, settings=SETTINGS), timeouts, bring_up_to_date)
    init = partial(_checked, check, migrated.schema)
    options = {"server_settings": PINNED, "command_timeout": timeouts.answer_s, "reset": _reset, "init": init}
    pool = await asyncpg.create_pool(url, min_size=0, max_size=POOL, timeout=timeouts.connect_s, **options)
    connect = partial(_connected, url, timeouts, init, settings={**BY_KEYS, **PINNED})
    appender = Appender(connect, timeouts.recovery_s, migrated.schema)
    listen = partial(_connected, listen_url or url, timeouts, _accept)
    own_wake = JournalWake(listen, lambda: appender.process, timeouts)
    database = Database(pool, appender, own_wake, wake or own_wake, migrated.schema)
    try:
        async with background(own_wake.run):
            yield PostgresStore(database, migrated)
    finally:
        await _ended(database.close(), timeouts)
        await _ended(appender.close(), timeouts)
        await _ended(pool.close(), timeouts)


async def _connected(
    url: str,
    timeouts: Timeouts,
    check: Callable[[asyncpg.Connection], Awaitable[None]],
    settings: Mapping[str, str] = PINNED,
) -> asyncpg.Connection:
    connection = await asyncpg.connect(
        url, server_settings=settings, timeout=timeouts.connect_s, command_timeout=timeouts.answer_s
    )
    try:
        await check(connection)
    except BaseException:
        connection.terminate()
        raise
    return connection


async def _accept(connection: asyncpg.Connection) -> None:
    return


async def _checked(
    check: Callable[[asyncpg.Connection], Awaitable[None]], schema: str, connection: asyncpg.Connection
) -> None:
    await check_path(connection)
    await check(connection)
    await enter(connection, schema)


async def _prepared(
    connect: Connect, timeouts: Timeouts, bring_up_to_date: Callable[[asyncpg.Connection], Awaitable[Migrated]]
) -> Migrated:
    try:
        connection = await connect()
    except asyncpg.ProtocolViolationError as error:
        raise UsageError(
            f"Postgres was not reached directly, but through a pooler ({error}); give its own URL"
        ) from error
    except REFUSED as error:
        raise refused(error) from error
    except (asyncpg.TooManyConnectionsError, *LOST) as error:
        raise Unavailable(f"cannot connect to Postgres ({error_text(error)})") from error
    try:
        return await bring_up_to_date(connection)
    except (asyncpg.PostgresError, *LOST) as error:
        raise translate(error, "unknown") from error
    finally:
        await _ended(connection.close(), timeouts)


async def _ended(closing: Awaitable[None], timeouts: Timeouts) -> None:
    """Closes a connection that may be half open; the driver drops it after the timeout."""
    with suppress(asyncpg.PostgresError, *LOST), anyio.move_on_after(timeouts.close_s, shield=True):
        await closing


async def _reset(connection: asyncpg.Connection) -> None:
    """Rolls back a cancelled transaction; our statements leave nothing else, and a full reset is a round trip."""
    if connection.is_in_transaction():
        await connection.execute("ROLLBACK")

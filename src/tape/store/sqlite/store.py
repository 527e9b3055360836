"""The SQLite store: a journal, its runs and its cells in one file, or in memory without one."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from anyio import to_thread

from tape.core.ids import Epoch
from tape.core.ports import Wake
from tape.store.audit import Audit
from tape.store.cells import Cells
from tape.store.epoch import begin_epoch
from tape.store.journal import Journal
from tape.store.reactions import Reactions
from tape.store.retention import Retention
from tape.store.runs import Runs
from tape.store.sqlite.connection import Database, SqliteTransaction
from tape.store.sqlite.location import Location
from tape.store.sqlite.migrate import Migrated, check_journal
from tape.store.sqlite.row_claims import RowClaims
from tape.store.sqlite.wake import DatagramWake, NoWake
from tape.store.sqlite.writer import Writer
from tape.store.tasks import Tasks


class SqliteStore:
    """The parts of a store in one database."""

    def __init__(self, database: Database, migrated: Migrated, is_bounded: bool) -> None:
        self._database = database
        epoch, self.applied = migrated
        self.journal = Journal(database, "sqlite", epoch)
        self.cells = Cells(database, "sqlite")
        claims = RowClaims(database)
        self.reactions = Reactions(database, "sqlite", claims)
        self.tasks = Tasks(database, "sqlite", claims)
        self.retention = Retention(database, "sqlite", claims)
        self.audit = Audit(database, "sqlite")
        self.runs = Runs(database, "sqlite", bounded=self.retention if is_bounded else None)

    @property
    def epoch(self) -> Epoch:
        return self.journal.epoch

    def transaction(self) -> AbstractAsyncContextManager[SqliteTransaction]:
        return self._database.transaction()

    async def new_epoch(self) -> Epoch:
        self.journal.observe_epoch(await begin_epoch(self._database, "sqlite"))
        return self.epoch


@asynccontextmanager
async def open_store(
    location: Location, wake: Wake | None = None, *, must_exist: bool = False
) -> AsyncIterator[SqliteStore]:
    """The store at a location, its schema brought up to date; a file is created unless it `must_exist`."""
    if must_exist and location.path is not None:
        await to_thread.run_sync(check_journal, location.path)
    location.prepare()
    own = DatagramWake(location.path.with_name(location.path.name + ".wake")) if location.path else NoWake()
    database = Database(location, Writer(location.keep_per_run), wake or own)
    try:
        yield SqliteStore(database, await database.migrate(), location.keep_per_run is not None)
    finally:
        await database.stop()
        own.close()

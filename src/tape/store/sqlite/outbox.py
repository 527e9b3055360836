"""The outbox in a SQLite file: one connection, used by one transaction at a time."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from typing import Final, NamedTuple, NoReturn

import anyio

from tape.core.errors import Unavailable, UsageError
from tape.store.caller_connection import check_schema, in_schema, moved
from tape.store.clock import now_ms
from tape.store.sqlite.location import BUSY_S, Location
from tape.store.sqlite.migrate import split_script
from tape.store.sqlite.outbox_steps import SqliteSteps
from tape.store.sqlite.worker import translate
from tape.store.statements import migrations

POLL_S: Final = 0.05
BUSY_POLL_S: Final = 0.002


class _Sql(NamedTuple):
    create_steps: str
    applied: str
    record: str


class FileWake:
    """Calls back whenever another connection has written to the file."""

    is_listening: Final = True

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        self._connect = connect

    async def run(self, on_change: Callable[[], None]) -> NoReturn:
        connection, seen = self._connect(), -1
        try:
            while True:
                (version,) = connection.execute("PRAGMA data_version").fetchone()
                if version != seen:
                    seen = version
                    on_change()
                await anyio.sleep(POLL_S)
        finally:
            connection.close()


class SqliteOutbox:
    """The file of an outbox."""

    steps: Final = SqliteSteps()

    def __init__(self, connect: Callable[[], sqlite3.Connection], schema: str) -> None:
        self._connect = connect
        self._connection = connect()
        self._connection.execute("PRAGMA busy_timeout = 0")
        self._lock = anyio.Lock()
        self.schema = schema

    def wake(self, channels: tuple[str, ...]) -> FileWake:
        return FileWake(self._connect)

    def close(self) -> None:
        self._connection.close()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[sqlite3.Connection]:
        """The connection in a transaction that commits when the caller leaves it; errors are the driver's own."""
        async with self._lock:
            await self._begin()
            try:
                yield self._connection
                with anyio.CancelScope(shield=True):
                    # starts before another task of this loop may block on the file that this transaction locks
                    await asyncio.get_running_loop().run_in_executor(None, self._connection.execute, "COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")
                raise

    async def _begin(self) -> None:
        """Takes the file's lock without blocking the loop, which another task may need to release it."""
        until = anyio.current_time() + BUSY_S
        while True:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or anyio.current_time() > until:
                    raise
                await anyio.sleep(BUSY_POLL_S)
            else:
                return

    @asynccontextmanager
    async def own(self) -> AsyncIterator[sqlite3.Connection]:
        """The same for statements of this package: the driver's errors become ours."""
        try:
            async with self.transaction() as connection:
                yield connection
        except sqlite3.Error as error:
            raise translate(error) from error

    once = own


@asynccontextmanager
async def open_outbox(url: str, *, schema: str) -> AsyncIterator[SqliteOutbox]:
    """The outbox of a file, which must have been migrated."""
    outbox = SqliteOutbox(_connector(url), check_schema(schema))
    try:
        yield outbox
    finally:
        outbox.close()


def has_outbox(path: Path, schema: str) -> bool:
    """Whether a file has the tables of an outbox; it stays as it is. A file that cannot be read passes.

    Opening an outbox changes the mode of its file, so this uses a connection of its own.
    """
    sql = in_schema("sqlite", "outbox_table.sql", check_schema(schema))["is_there"]
    with suppress(sqlite3.Error), closing(sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True)) as connection:
        return bool(connection.execute(sql).fetchone()[0])
    return True


async def migrate_outbox(url: str, schema: str) -> tuple[str, ...]:
    """Brings the schema of the outbox up to date, all or nothing, and returns the steps that were missing."""
    return await anyio.to_thread.run_sync(_migrate, url, check_schema(schema))


def _connector(url: str) -> Callable[[], sqlite3.Connection]:
    location = Location.parse(url, unsafe_durability=True)
    if location.path is None:
        raise UsageError("an outbox lives beside your own tables: in a file or in Postgres, not in memory")
    location.prepare()

    def connect() -> sqlite3.Connection:
        """A connection for any thread, because a handler that is not async runs in one of its own."""
        connection = sqlite3.connect(str(location.path), BUSY_S, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute(f"PRAGMA synchronous = {location.synchronous}")
        except sqlite3.Error as error:
            connection.close()
            raise Unavailable(f"the database file cannot be used ({error})") from error
        return connection

    return connect


def _migrate(url: str, schema: str) -> tuple[str, ...]:
    sql = _Sql(**in_schema("sqlite", "outbox_migrate.sql", schema))
    connection = _connector(url)()
    try:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(sql.create_steps)
        done = {number for (number,) in connection.execute(sql.applied)}
        missing = [step for step in migrations("sqlite", "outbox") if step[0] not in done]
        for number, name, script in missing:
            for statement in split_script(moved("sqlite", script, schema)):
                connection.execute(statement)
            connection.execute(sql.record, {"number": number, "name": name, "now_ms": now_ms()})
        connection.execute("COMMIT")
    finally:
        connection.close()
    return tuple(f"{number:04} {name}" for number, name, _ in missing)

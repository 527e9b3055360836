"""SQLite as one writer and one reader, each a thread with its own connection."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final
from weakref import WeakKeyDictionary

import anyio

from tape.core.errors import TapeError, Unavailable, UsageError
from tape.core.event import Entry
from tape.core.ids import GlobalSeq
from tape.core.ports import AppendOutcome, Wake
from tape.core.sequence import AppendRequest
from tape.store.connection import Query, Row
from tape.store.sqlite.location import Location
from tape.store.sqlite.migrate import Migrated, migrate
from tape.store.sqlite.worker import SqliteThread
from tape.store.sqlite.writer import Writer
from tape.store.statements import statements

POLL_S: Final = 0.01
QUICK: Final = 16  # requests and events
QUICK_BYTES: Final = 16 << 10


class SqliteTransaction:
    """A transaction in progress."""

    def __init__(self, worker: SqliteThread) -> None:
        self._worker = worker
        self.staged: list[AppendRequest] = []
        self.outcomes: Sequence[Sequence[Entry]] = ()

    def append(self, request: AppendRequest) -> None:
        self.staged.append(request)

    async def lock(self) -> None:
        """Counts a change of heads; the transaction has had the write lock of the file from its beginning."""
        await self.fetch(statements("sqlite", "append.sql")["count_change"], {})

    async def fetch(self, statement: str, parameters: Mapping[str, object]) -> Sequence[Row]:
        known = _checked(parameters)
        return await self._worker.call(lambda connection: connection.execute(statement, known).fetchall())


class Database:
    """One database: queries read a snapshot, writers take turns."""

    def __init__(self, location: Location, writer: Writer, wake: Wake) -> None:
        self._path = location.path
        self._identity = _identity(location.path) if location.path is not None else None
        self._writer = writer
        self._wake = wake
        self._write = SqliteThread("tape-writer", location.connect)
        self._read = self._write if location.path is None else SqliteThread("tape-reader", location.connect)
        self._write_lock = asyncio.Lock()
        self._commits = 0
        self._seen: WeakKeyDictionary[asyncio.Task[object] | None, int] = WeakKeyDictionary()

    async def migrate(self) -> Migrated:
        return await self._write.call(migrate)

    async def snapshot(self, *queries: Query) -> Sequence[Sequence[Row]]:
        try:
            if self._read is not self._write:
                return await self._read.call(partial(_snapshot, queries))
            async with self._write_lock:  # memory has one connection, and a transaction may be open on it
                return await self._read.call(partial(_snapshot, queries))
        except Unavailable as error:
            raise Unavailable(error.reason) from error  # a read writes nothing

    async def append(self, requests: Sequence[AppendRequest]) -> Sequence[AppendOutcome]:
        async with self._write_lock:
            is_quick = self._path is None and _is_quick(requests)
            call = self._write.call_here if is_quick else self._write.call
            outcomes = await call(partial(self._append, requests))
        await self._wake.notify(self._writer.head)
        return outcomes

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[SqliteTransaction]:
        async with self._write_lock:
            block = SqliteTransaction(self._write)
            try:
                await self._write.call(self._begin)
                yield block
                block.outcomes = await self._write.call(partial(self._finish, block.staged))
            except BaseException:
                with anyio.CancelScope(shield=True):
                    await self._write.call(self._rollback)
                raise
        await self._wake.notify(self._writer.head)

    async def wait(self, beyond: GlobalSeq) -> None:
        """Returns when anybody has written since the last wait of this task."""
        waiter = asyncio.current_task()
        seen = version = self._seen.get(waiter, -1)
        while version == seen:
            with anyio.move_on_after(POLL_S):
                await self._wake.wait_beyond(beyond)
            version = await self._read.call(self._changes)
        self._seen[waiter] = version

    async def stop(self) -> None:
        await self._write.stop()
        if self._read is not self._write:
            await self._read.stop()

    def _begin(self, connection: sqlite3.Connection) -> None:
        if connection.in_transaction:
            self._rollback(connection)  # its owner was cancelled before it could roll back
        if self._path is not None and self._identity != _identity(self._path):
            raise Unavailable("the database file was removed or replaced; open the journal again")
        connection.execute("BEGIN IMMEDIATE")

    def _append(self, requests: Sequence[AppendRequest], connection: sqlite3.Connection) -> Sequence[AppendOutcome]:
        self._begin(connection)
        try:
            outcomes = self._writer.append(connection, requests)
            self._commit(connection)
        except BaseException:
            self._rollback(connection)
            raise
        return outcomes

    def _finish(self, staged: Sequence[AppendRequest], connection: sqlite3.Connection) -> Sequence[Sequence[Entry]]:
        self._writer.forget()  # the statements of the transaction may have changed what the writer cached
        entries = []
        for outcome in self._writer.append(connection, staged) if staged else ():
            if isinstance(outcome, TapeError):
                raise outcome
            entries.append(outcome)
        self._commit(connection)
        return entries

    def _commit(self, connection: sqlite3.Connection) -> None:
        connection.execute("COMMIT")
        self._commits += 1

    def _rollback(self, connection: sqlite3.Connection) -> None:
        self._writer.forget()
        if connection.in_transaction:
            connection.execute("ROLLBACK")

    def _changes(self, connection: sqlite3.Connection) -> int:
        """A number that changes with every commit; data_version does not count those of its own connection."""
        (version,) = connection.execute("PRAGMA data_version").fetchone()
        return int(version) + (self._commits if self._read is self._write else 0)


def _is_quick(requests: Sequence[AppendRequest]) -> bool:
    """Whether appending to memory here is faster than waking the writer's thread."""
    events = sum(len(request.events) for request in requests)
    return events + len(requests) <= QUICK and sum(request.size for request in requests) <= QUICK_BYTES


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _snapshot(queries: Sequence[Query], connection: sqlite3.Connection) -> Sequence[Sequence[Row]]:
    """The rows of the queries; text that is not UTF-8 is kept as it is, so that its checksum fails."""
    try:
        return _read(queries, connection)
    except sqlite3.OperationalError as error:
        if "decode to UTF-8" not in str(error):
            raise
    connection.text_factory = partial(str, encoding="utf-8", errors="surrogateescape")
    try:
        return _read(queries, connection)
    finally:
        connection.text_factory = str


def _read(queries: Sequence[Query], connection: sqlite3.Connection) -> Sequence[Sequence[Row]]:
    connection.execute("BEGIN")
    try:
        return [_rows(connection.execute(query.sql, _checked(query.parameters)), query.budget) for query in queries]
    finally:
        if connection.in_transaction:  # an I/O error ends it
            connection.execute("ROLLBACK")


def _checked(parameters: Mapping[str, object]) -> dict[str, object]:
    """Refuses text with U+0000, as Postgres does; SQLite would find nothing."""
    for value in parameters.values():
        if isinstance(value, str) and "\0" in value:
            raise UsageError("a text holds U+0000, which no store can keep")
    return dict(parameters)


def _rows(cursor: sqlite3.Cursor, budget: int | None) -> Sequence[Row]:
    if budget is None:
        return cursor.fetchall()
    rows: list[Row] = []
    for row in cursor:
        rows.append(row)
        budget -= sum(len(payload) for payload in row[-2:] if isinstance(payload, str | bytes))
        if budget <= 0:
            break
    return rows

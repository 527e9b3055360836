"""SQLite as one writer and one reader, each a thread with its own connection."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

import anyio

from tape.core.errors import TapeError
from tape.core.event import Entry
from tape.core.ids import GlobalSeq
from tape.core.ports import Outcome, Wake
from tape.core.sequence import Request
from tape.store.connection import Query, Row
from tape.store.sqlite.migrate import Migrated, migrate
from tape.store.sqlite.worker import Worker
from tape.store.sqlite.writer import Writer

POLL_S: Final = 0.01


class Block:
    """A transaction in progress."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self.staged: list[Request] = []
        self.outcomes: Sequence[Sequence[Entry]] = ()

    def append(self, request: Request) -> None:
        self.staged.append(request)

    async def lock(self) -> None:
        return  # the block has the file's write lock from its beginning

    async def fetch(self, statement: str, parameters: Mapping[str, object]) -> Sequence[Row]:
        return await self._worker.call(lambda connection: connection.execute(statement, parameters).fetchall())


class Database:
    """One database: what is read comes from a snapshot, what is written is written in turn."""

    def __init__(self, connect: Callable[[], sqlite3.Connection], writer: Writer, wake: Wake, is_shared: bool) -> None:
        self._writer = writer
        self._wake = wake
        self._write = Worker("tape-writer", connect)
        self._read = Worker("tape-reader", connect) if is_shared else self._write
        self._turn = asyncio.Lock()
        self._version = -1
        self._commits = 0

    async def migrate(self) -> Migrated:
        return await self._write.call(migrate)

    async def snapshot(self, *queries: Query) -> Sequence[Sequence[Row]]:
        if self._read is not self._write:
            return await self._read.call(partial(_snapshot, queries))
        async with self._turn:  # without a file there is one connection, and a block may be open on it
            return await self._read.call(partial(_snapshot, queries))

    async def append(self, requests: Sequence[Request]) -> Sequence[Outcome]:
        async with self._turn:
            outcomes = await self._write.call(partial(self._append, requests))
        await self._wake.tell(self._writer.head)
        return outcomes

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Block]:
        async with self._turn:
            block = Block(self._write)
            await self._write.call(_begin)
            try:
                yield block
                block.outcomes = await self._write.call(partial(self._finish, block.staged))
            except BaseException:
                with anyio.CancelScope(shield=True):
                    await self._write.call(self._undo)
                raise
        await self._wake.tell(self._writer.head)

    async def wait(self, beyond: GlobalSeq) -> None:
        version = self._version
        while version == self._version:
            with anyio.move_on_after(POLL_S):
                await self._wake.wait_beyond(beyond)
            version = await self._read.call(self._changes)
        self._version = version

    def stop(self) -> None:
        self._write.stop()
        if self._read is not self._write:
            self._read.stop()

    def _append(self, requests: Sequence[Request], connection: sqlite3.Connection) -> Sequence[Outcome]:
        _begin(connection)
        try:
            outcomes = self._writer.append(connection, requests)
            self._commit(connection)
        except BaseException:
            self._undo(connection)
            raise
        return outcomes

    def _finish(self, staged: Sequence[Request], connection: sqlite3.Connection) -> Sequence[Sequence[Entry]]:
        self._writer.forget()  # the block's own statements may have moved what the writer knew
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

    def _undo(self, connection: sqlite3.Connection) -> None:
        self._writer.forget()
        if connection.in_transaction:
            connection.execute("ROLLBACK")

    def _changes(self, connection: sqlite3.Connection) -> int:
        """A number that moves when anybody has written."""
        (version,) = connection.execute("PRAGMA data_version").fetchone()
        return int(version) + (self._commits if self._read is self._write else 0)


def _begin(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")


def _snapshot(queries: Sequence[Query], connection: sqlite3.Connection) -> Sequence[Sequence[Row]]:
    """What the queries find; text that is no longer text comes as it is, for its checksum to tell."""
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
        return [_rows(connection.execute(query.sql, dict(query.parameters)), query.budget) for query in queries]
    finally:
        connection.execute("ROLLBACK")


def _rows(cursor: sqlite3.Cursor, budget: int | None) -> Sequence[Row]:
    if budget is None:
        return cursor.fetchall()
    rows: list[Row] = []
    for row in cursor:
        rows.append(row)
        budget -= len(row[-2] or row[-1] or b"")
        if budget <= 0:
            break
    return rows

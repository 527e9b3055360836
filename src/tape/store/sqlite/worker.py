"""A thread that owns one sqlite3 connection and runs every call on it, in order."""

import asyncio
import sqlite3
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeAlias, TypeVar

import anyio

from tape.core.errors import Corrupt, TapeError, Unavailable, UsageError

T = TypeVar("T")

READ_ONLY = (
    "this account may only read the database file, which Tape writes to even when it reads; "
    "allow it to write the file and its folder, read a copy, or read at a server"
)
_NOT_THE_DATABASE = (sqlite3.DataError, sqlite3.IntegrityError, sqlite3.ProgrammingError)

_Call: TypeAlias = tuple[Callable[[sqlite3.Connection], Any], asyncio.AbstractEventLoop, "asyncio.Future[Any]"]


class SqliteThread:
    """Runs functions on its connection, one after the other."""

    def __init__(self, name: str, connect: Callable[[], sqlite3.Connection]) -> None:
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._connect = connect
        self._is_stopped = False
        self._connection: sqlite3.Connection | None = None
        self._asked = 0
        self._answered = 0  # written by the thread alone, `_asked` by its callers
        self._thread = Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    async def call(self, function: Callable[[sqlite3.Connection], T]) -> T:
        """The result of the function; it runs to its end even if the caller is cancelled."""
        if self._is_stopped:
            raise Unavailable("the journal is closed")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._asked += 1
        self._calls.put((function, loop, future))
        return await future

    async def call_here(self, function: Callable[[sqlite3.Connection], T]) -> T:
        """Runs a short function in the caller's thread if the worker is idle, which saves waking it.

        Only for a connection that threads may share.
        """
        if self._is_stopped or self._connection is None or self._answered < self._asked:
            return await self.call(function)
        try:
            return function(self._connection)
        except Exception as failure:  # noqa: BLE001 - raised in the caller
            raise translate(failure)  # noqa: B904 - it has its cause already

    async def stop(self) -> None:
        """Finishes all calls and closes the connection without blocking the loop."""
        self._is_stopped = True
        self._calls.put(None)
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(self._thread.join)

    def _run(self) -> None:
        while (call := self._calls.get()) is not None:
            function, loop, future = call
            result = error = None
            try:
                self._connection = self._connection or self._connect()
                result = function(self._connection)
            except Exception as failure:  # noqa: BLE001 - raised in the caller
                error = translate(failure)
            self._answered += 1
            _settle_on(loop, future, result, error)
        if self._connection is not None:
            self._connection.close()


def _settle_on(
    loop: asyncio.AbstractEventLoop, future: "asyncio.Future[Any]", result: Any, error: Exception | None
) -> None:
    try:
        loop.call_soon_threadsafe(_settle, future, result, error)
    except RuntimeError:
        return  # the loop is closed, and nobody waits


def _settle(future: "asyncio.Future[Any]", result: Any, error: Exception | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)


def translate(error: Exception) -> Exception:
    """Translates errors of the database; those of a bad value or of our own code stay."""
    if isinstance(error, UnicodeEncodeError):
        return UsageError("a text holds a lone surrogate, which no store can keep")
    if isinstance(error, UnicodeDecodeError):
        return Corrupt(f"the database file is damaged ({error.reason})")
    if not isinstance(error, sqlite3.DatabaseError) or isinstance(error, _NOT_THE_DATABASE):
        return error
    ours = _ours(error)
    ours.__cause__ = error
    return ours


def _ours(error: sqlite3.DatabaseError) -> TapeError:
    name = getattr(error, "sqlite_errorname", "SQLITE_ERROR")
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
        return Corrupt(f"the database file is damaged ({error})")
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return Unavailable("another process holds the database file's lock")
    if name.startswith("SQLITE_FULL"):
        return Unavailable("the disk is full")
    if name.startswith("SQLITE_READONLY"):
        return Unavailable(READ_ONLY)
    return Unavailable(f"the database file cannot be used ({error})", "unknown" if "IOERR" in name else "nothing")

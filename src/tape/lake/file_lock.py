"""Who may open a cold file: one writer alone, or any number of readers.

A lock file stands beside it and is never deleted. The file itself is opened by DuckDB only: closing any other handle of
it would drop DuckDB's own locks, and so would asking it who holds them.
"""

import fcntl
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final

import anyio

from tape.core.errors import Unavailable

POLL_S: Final = 0.01


@asynccontextmanager
async def exclusive_lock(path: Path) -> AsyncIterator[None]:
    """Waits for the file to be free, then holds it alone; whatever ends the process lets go of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(_lock(path), os.O_RDWR | os.O_CREAT, 0o666)
    try:
        while not _is_got(handle, fcntl.LOCK_EX):  # noqa: ASYNC110 - another process tells nobody when it lets go
            await anyio.sleep(POLL_S)
        yield
    finally:
        os.close(handle)


@contextmanager
def shared_lock(path: Path) -> Iterator[None]:
    """Keeps writers out for as long as it takes to read a page; a file that has one is not read."""
    try:
        handle = os.open(_lock(path), os.O_RDONLY)
    except FileNotFoundError:
        handle = None  # never written where it lies now: somebody has put it there
    try:
        if handle is not None and not _is_got(handle, fcntl.LOCK_SH):
            raise Unavailable(f"{path} is being written")
        yield
    finally:
        if handle is not None:
            os.close(handle)


def is_locked(path: Path) -> bool:
    """Whether somebody writes the file now; found out without opening it."""
    try:
        with shared_lock(path):
            return False
    except Unavailable:
        return True


def _lock(path: Path) -> Path:
    return path.with_name(path.name + ".lock")


def _is_got(handle: int, mode: int) -> bool:
    try:
        fcntl.flock(handle, mode | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True

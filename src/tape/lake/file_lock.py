"""Locks of a file or folder between processes: one writer, or any number of readers.

The lock is on a file beside it, which is never deleted. Only DuckDB opens a cold file itself: closing any other handle
of it would drop DuckDB's own locks.
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
    """Waits until no other process holds a lock, then locks out readers and writers; ends with the process."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(_lock(path), os.O_RDWR | os.O_CREAT, 0o666)
    try:
        while not _try_lock(handle, fcntl.LOCK_EX):  # noqa: ASYNC110 - another process does not notify on release
            await anyio.sleep(POLL_S)
        yield
    finally:
        os.close(handle)


@contextmanager
def shared_lock(path: Path) -> Iterator[None]:
    """Locks out writers; raises Unavailable if the file has one."""
    try:
        handle = os.open(_lock(path), os.O_RDONLY)
    except FileNotFoundError:
        handle = None  # the file was never written here, but copied from elsewhere
    try:
        if handle is not None and not _try_lock(handle, fcntl.LOCK_SH):
            raise Unavailable(f"{path} is being written")
        yield
    finally:
        if handle is not None:
            os.close(handle)


def is_locked(path: Path) -> bool:
    """Whether a process writes the file now; does not open it."""
    try:
        with shared_lock(path):
            return False
    except Unavailable:
        return True


def _lock(path: Path) -> Path:
    return path.with_name(path.name + ".lock")


def _try_lock(handle: int, mode: int) -> bool:
    try:
        fcntl.flock(handle, mode | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True

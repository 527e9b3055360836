"""The DuckDB file of a cold run, open only while it is written, because an open one costs memory."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import anyio
from anyio import to_thread
from duckdb import DuckDBPyConnection

from tape.store.duckdb.connection import open_to_write
from tape.store.duckdb.events import Events

R = TypeVar("R")


class ColdRunFile:
    """Runs one call at a time, in a thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._events: Events | None = None

    async def call(self, act: Callable[[Events], R]) -> R:
        """Calls a function with the tables; opens the file if it is not open."""
        return await to_thread.run_sync(self._call, act)

    async def close(self) -> None:
        """Flushes and closes the file; the next call opens it again."""
        events, self._events = self._events, None
        if events is not None:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(events.close)

    def _call(self, act: Callable[[Events], R]) -> R:
        if self._events is None:
            self._events = Events(open_to_write(self._path, _create_tables))
            self._events.create()  # a file that the user made may have other tables only
        return act(self._events)


def _create_tables(connection: DuckDBPyConnection) -> None:
    Events(connection).create()

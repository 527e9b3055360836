"""Copies a run into a DuckDB file while the run grows, until its end.

One process writes a file at a time. After a kill the next one continues after the last seq in the file; entries that
the journal no longer has by then are recorded as a gap, which readers of the file raise.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Final, Generic, NoReturn, TypeVar

import anyio
from anyio import to_thread
from duckdb import DuckDBPyConnection

from tape.core.background import background
from tape.core.errors import BrokerOverflowError, Conflict, InvalidCursor, TapeError
from tape.core.event import Entry, check_run_id
from tape.core.ids import RunId, Seq
from tape.core.ports import EventBroker
from tape.core.run import RunMeta
from tape.lake.cold.buffer import ColdBatch, RowBuffer
from tape.lake.file_lock import exclusive_lock
from tape.store.duckdb.connection import open_to_write
from tape.store.duckdb.events import EventRow, Events, Gap, Last

IDLE_S: Final = 1.0

T = TypeVar("T")
R = TypeVar("R")


async def persist_to_duckdb(
    broker: EventBroker, run_id: RunId, path: str | Path, *, meta: RunMeta | None = None
) -> None:
    """Writes every event of a run from a broker, until the run is closed."""
    copy = _RunCopy(lambda seq: broker.stream(run_id, seq), EventRow.of_envelope, run_id, may_be_reaped=True)
    await _persist(copy, Path(path), meta)


async def persist_entries(
    read: Callable[[Seq], AsyncIterator[Entry]], run_id: RunId, path: str | Path, *, meta: RunMeta | None = None
) -> None:
    """Writes every entry of a run from a journal, with positions; `read` streams the run from a seq, inclusive."""
    copy = _RunCopy(read, partial(EventRow.of_entry, run_id), run_id, may_be_reaped=False)
    await _persist(copy, Path(path), meta)


async def _persist(copy: "_RunCopy[T]", path: Path, meta: RunMeta | None) -> None:
    async with exclusive_lock(path):
        file = ColdRunFile(path)
        try:
            await copy.write_to(file, meta or RunMeta())
        finally:
            await file.close()


class ColdRunFile:
    """The file of a run, written in a thread by one call at a time; closed when idle, as an open one costs memory."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._events: Events | None = None

    @property
    def exists(self) -> bool:
        return self._path.exists()

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


class _RunCopy(Generic[T]):
    """Copies one run into a file: one task reads, another writes what has been read meanwhile.

    The stream of a run that may be reaped may end without its last entries, so its end is not recorded then.
    """

    def __init__(
        self,
        read: Callable[[Seq], AsyncIterator[T]],
        row_of: Callable[[T], EventRow],
        run_id: RunId,
        may_be_reaped: bool,
    ) -> None:
        self._read = read
        self._row_of = row_of
        self._run_id = check_run_id(run_id)
        self._may_be_reaped = may_be_reaped
        self._last = Last()
        self._after = Seq(0)
        self._is_empty = True
        self._is_begun = False
        self._has_seen_last = False
        self._buffer = RowBuffer()

    async def write_to(self, file: ColdRunFile, meta: RunMeta) -> None:
        """A new file is made with the first entry, or at the end of a run without any: it takes 50 ms of CPU."""
        if file.exists:
            await self._begin(file, meta)
        async with background(self._collect):
            while (batch := await self._next_batch(file)) is not None:
                await self._begin(file, meta)
                await file.call(partial(Events.write, rows=batch.rows, gaps=batch.gaps))
        await self._begin(file, meta)
        if self._is_empty and self._may_be_reaped:
            return
        if self._is_empty and self._last.seq:
            raise self._other_journal()
        await file.call(lambda events: events.end(self._run_id, self._after))

    async def _begin(self, file: ColdRunFile, meta: RunMeta) -> None:
        """Records the run in its file, once; what the file has of it already is not written again."""
        if not self._is_begun:
            self._is_begun = True
            self._last = await file.call(lambda events: events.begin(self._run_id, meta))
            self._after = max(self._after, self._last.seq)

    async def _next_batch(self, file: ColdRunFile) -> ColdBatch | None:
        """Waits for the next batch; closes the file if that takes long."""
        with anyio.move_on_after(IDLE_S):
            return await self._buffer.take()
        await file.close()
        return await self._buffer.take()

    async def _collect(self) -> NoReturn:
        failure = None
        try:
            await self._read_all()
        except TapeError as error:
            failure = error
        self._buffer.end(failure)
        while True:
            await anyio.sleep_forever()

    async def _read_all(self) -> None:
        """Reads from the last entry in the file: if that is another entry now, it is another journal."""
        place: Seq | None = Seq(max(self._last.seq, 1))
        while place is not None:
            try:
                place = await self._read_from(place)
            except InvalidCursor as error:
                raise self._other_journal() from error

    async def _read_from(self, seq: Seq) -> Seq | None:
        """Reads to the end and returns None, or to a gap and returns where history continues."""
        try:
            async with AsyncExitStack() as stack:
                items = self._read(seq)
                if isinstance(items, AsyncGenerator):
                    stack.push_async_callback(items.aclose)
                async for item in items:
                    self._add(self._row_of(item))
                    await self._buffer.wait_for_space()
        except BrokerOverflowError as gap:
            if gap.available_from <= seq:
                raise
            self._skip_to(Seq(gap.available_from))
            return Seq(gap.available_from)
        return None

    def _add(self, row: EventRow) -> None:
        self._is_empty = False
        if row.seq <= self._after:
            if row.seq == self._last.seq and row.event_id != self._last.event_id:
                raise self._other_journal()
            self._has_seen_last = self._has_seen_last or row.seq == self._last.seq
            return
        is_other = row.epoch is not None and self._last.epoch not in (None, row.epoch)
        if is_other and not self._has_seen_last:  # a run may continue in another term
            raise self._other_journal()
        self._skip_to(row.seq)
        self._buffer.put(row)
        self._after = row.seq

    def _skip_to(self, seq: Seq) -> None:
        """Records the seqs in between as a gap."""
        self._is_empty = False
        if seq > self._after + 1:
            self._buffer.put_gap(Gap(self._run_id, Seq(self._after + 1), Seq(seq - 1)))
            self._after = Seq(seq - 1)

    def _other_journal(self) -> Conflict:
        return Conflict(f"the file holds run {self._run_id!r} of another journal; move it away and begin a new one")

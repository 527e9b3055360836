"""Reads the lake without Spark: the journal's entries, byte for byte, at the same positions."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from threading import Lock
from typing import Final, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from anyio import to_thread

from tape.core.errors import Corrupt
from tape.core.event import Entry
from tape.core.fork import Segment
from tape.core.ids import GlobalSeq, RunId, Seq
from tape.core.ports import Bounds, Page, RunPage
from tape.core.run import Head
from tape.core.subject import Pattern
from tape.lake.log import DeltaLog, LakeSnapshot
from tape.lake.parquet_files import RowGroup
from tape.lake.row_groups import RowGroupCache, entries_of
from tape.store.journal import PAGE, PAGE_BYTES, WINDOW, intact

RUN_POSITIONS: Final = 4_096  # how many (run, seq) are remembered with their position, for the next page of the run

T = TypeVar("T")


class LakeReader:
    """Reads entries of the lake. The lake has no run heads, so a page's last entry counts as the run's head.

    The reader stays on one version until it is asked for a position beyond it, or until a file of it is gone.
    """

    def __init__(self, log: DeltaLog) -> None:
        self._log = log
        self._cache = RowGroupCache(log.table)
        self._snapshot: LakeSnapshot | None = None
        self._positions: OrderedDict[tuple[RunId, Seq], GlobalSeq] = OrderedDict()
        self._lock = Lock()

    async def bounds(self) -> Bounds:
        return await to_thread.run_sync(self._query, _bounds, None)

    async def read(self, after: GlobalSeq, *, pattern: Pattern | None = None) -> Page:
        return await to_thread.run_sync(self._query, lambda snapshot: self._page(snapshot, after, pattern), after)

    async def read_run(self, run_id: RunId, after: Seq, segments: Sequence[Segment] = ()) -> RunPage:
        pieces = tuple(segments) or (Segment(run_id, Seq(after + 1), None),)
        return await to_thread.run_sync(
            self._query, lambda snapshot: self._run_page(snapshot, run_id, after, pieces), None
        )

    def _query(self, query: Callable[[LakeSnapshot], T], beyond: int | None) -> T:
        """Runs a query on the current version, or on the newest one if that ends too early or has lost a file."""
        with self._lock:
            if self._snapshot is None or beyond is None or beyond >= self._snapshot.through:
                self._snapshot = self._log.snapshot()
            try:
                return query(self._snapshot)
            except FileNotFoundError:
                self._cache.clear()
                self._snapshot = self._log.snapshot()
            try:
                return query(self._snapshot)
            except FileNotFoundError as error:
                raise Corrupt(f"the lake has lost {error.filename or error}") from error

    def _page(self, snapshot: LakeSnapshot, after: GlobalSeq, pattern: Pattern | None) -> Page:
        for group in self._cache.row_groups(snapshot.files, after):
            found = self._found(group, after, pattern)
            entries = _fit_page(intact(entries_of(found.slice(0, PAGE))))
            if len(entries) < len(found):
                return Page(entries, entries[-1].global_seq, _bounds(snapshot))
            if entries or group.last - after >= WINDOW:
                return Page(entries, group.last, _bounds(snapshot))
        return Page((), max(after, snapshot.through), _bounds(snapshot))

    def _found(self, group: RowGroup, after: GlobalSeq, pattern: Pattern | None) -> pa.Table:
        """The rows of a row group after a position and under a pattern."""
        skip = max(after + 1 - group.first, 0)
        if pattern is None:
            return self._cache.rows(group).slice(skip)
        subjects = self._cache.column(group, "subject").slice(skip)
        indices = _matching(subjects, pattern)
        return self._cache.rows(group).slice(skip).take(indices) if indices else pa.table({})

    def _run_page(self, snapshot: LakeSnapshot, run_id: RunId, after: Seq, pieces: Sequence[Segment]) -> RunPage:
        position = self._positions.get((run_id, after), GlobalSeq(0))
        entries: list[Entry] = []
        for entry in self._run_entries(snapshot, position, pieces):
            if entry.seq != after + 1 + len(entries) or len(entries) == PAGE:
                break
            entries.append(entry)
        entries = _fit_page(intact(entries))
        if entries:
            self._remember_position(run_id, entries[-1])
        return RunPage(entries, Head(last_seq=entries[-1].seq) if entries else None, _bounds(snapshot))

    def _run_entries(self, snapshot: LakeSnapshot, position: GlobalSeq, pieces: Sequence[Segment]) -> Iterator[Entry]:
        owners = pa.array({piece.run_id for piece in pieces}, pa.string())
        names = owners.to_pylist()
        for group in self._cache.row_groups(snapshot.files, position):
            if not self._cache.may_contain(group, "run_id", names):
                continue
            mask = pc.is_in(self._cache.column(group, "run_id"), value_set=owners)
            if pc.any(mask).as_py():
                mine = entries_of(self._cache.rows(group).filter(mask))
                yield from (entry for entry in mine if entry.global_seq > position and _is_in(entry, pieces))

    def _remember_position(self, run_id: RunId, last: Entry) -> None:
        self._positions[run_id, last.seq] = last.global_seq
        if len(self._positions) > RUN_POSITIONS:
            self._positions.popitem(last=False)


def _bounds(snapshot: LakeSnapshot) -> Bounds:
    return Bounds(GlobalSeq(1), snapshot.through)


def _matching(subjects: pa.ChunkedArray, pattern: Pattern) -> list[int]:
    span = pattern.prefix_range()
    if span is None:
        return [index for index, subject in enumerate(subjects.to_pylist()) if pattern.matches(subject)]
    mask = pc.and_(pc.greater_equal(subjects, span[0]), pc.less(subjects, span[1]))
    indices = pc.indices_nonzero(mask)
    near = zip(indices.to_pylist(), subjects.take(indices).to_pylist(), strict=True)
    return [index for index, subject in near if pattern.matches(subject)]


def _is_in(entry: Entry, pieces: Sequence[Segment]) -> bool:
    return any(
        entry.run_id == run_id and first <= entry.seq and (last is None or entry.seq <= last)
        for run_id, first, last in pieces
    )


def _fit_page(entries: list[Entry]) -> list[Entry]:
    """Cuts entries to the byte limit of a page, but returns at least one."""
    bytes_left = PAGE_BYTES
    for number, entry in enumerate(entries):
        bytes_left -= entry.weight
        if bytes_left < 0 and number:
            return entries[:number]
    return entries

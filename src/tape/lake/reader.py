"""The lake as a reader of the journal, without Spark: the same entries, to the byte, at the same positions."""

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
from tape.lake.row_groups import RowGroupCache, Stretch, entries_of
from tape.store.journal import PAGE, PAGE_BYTES, WINDOW, intact

PLACES: Final = 4_096  # where readers of runs have come to, so that the next page begins there

T = TypeVar("T")


class LakeReader:
    """Reads what the lake holds. It keeps entries, not runs: a run's head is where a page of it ends.

    A version that was read is read on until a place beyond it is asked for, or until one of its files is gone.
    """

    def __init__(self, log: DeltaLog) -> None:
        self._log = log
        self._shelf = RowGroupCache(log.table)
        self._seen: LakeSnapshot | None = None
        self._places: OrderedDict[tuple[RunId, Seq], GlobalSeq] = OrderedDict()
        self._lock = Lock()

    async def bounds(self) -> Bounds:
        return await to_thread.run_sync(self._ask, _bounds, None)

    async def read(self, after: GlobalSeq, *, pattern: Pattern | None = None) -> Page:
        return await to_thread.run_sync(self._ask, lambda seen: self._page(seen, after, pattern), after)

    async def read_run(self, run_id: RunId, after: Seq, segments: Sequence[Segment] = ()) -> RunPage:
        pieces = tuple(segments) or (Segment(run_id, Seq(after + 1), None),)
        return await to_thread.run_sync(self._ask, lambda seen: self._run_page(seen, run_id, after, pieces), None)

    def _ask(self, question: Callable[[LakeSnapshot], T], beyond: int | None) -> T:
        """An answer from the version that is read; from the newest if that ends too soon or has lost a file."""
        with self._lock:
            if self._seen is None or beyond is None or beyond >= self._seen.through:
                self._seen = self._log.snapshot()
            try:
                return question(self._seen)
            except FileNotFoundError:
                self._shelf.forget()
                self._seen = self._log.snapshot()
            try:
                return question(self._seen)
            except FileNotFoundError as error:
                raise Corrupt(f"the lake has lost {error.filename or error}") from error

    def _page(self, seen: LakeSnapshot, after: GlobalSeq, pattern: Pattern | None) -> Page:
        for stretch in self._shelf.stretches(seen.files, after):
            found = self._found(stretch, after, pattern)
            entries = _cut(intact(entries_of(found.slice(0, PAGE))))
            if len(entries) < len(found):
                return Page(entries, entries[-1].global_seq, _bounds(seen))
            if entries or stretch.group.last - after >= WINDOW:
                return Page(entries, stretch.group.last, _bounds(seen))
        return Page((), max(after, seen.through), _bounds(seen))

    def _found(self, stretch: Stretch, after: GlobalSeq, pattern: Pattern | None) -> pa.Table:
        """The rows of a stretch that are wanted."""
        skip = max(after + 1 - stretch.group.first, 0)
        if pattern is None:
            return self._shelf.rows(stretch).slice(skip)
        subjects = self._shelf.column(stretch, "subject").slice(skip)
        places = _matching(subjects, pattern)
        return self._shelf.rows(stretch).slice(skip).take(places) if places else pa.table({})

    def _run_page(self, seen: LakeSnapshot, run_id: RunId, after: Seq, pieces: Sequence[Segment]) -> RunPage:
        place = self._places.get((run_id, after), GlobalSeq(0))
        entries: list[Entry] = []
        for entry in self._run_entries(seen, place, pieces):
            if entry.seq != after + 1 + len(entries) or len(entries) == PAGE:
                break
            entries.append(entry)
        entries = _cut(intact(entries))
        if entries:
            self._remember(run_id, entries[-1])
        return RunPage(entries, Head(last_seq=entries[-1].seq) if entries else None, _bounds(seen))

    def _run_entries(self, seen: LakeSnapshot, place: GlobalSeq, pieces: Sequence[Segment]) -> Iterator[Entry]:
        owners = pa.array({piece.run_id for piece in pieces}, pa.string())
        names = owners.to_pylist()
        for stretch in self._shelf.stretches(seen.files, place):
            if not self._shelf.may_hold(stretch, "run_id", names):
                continue
            mask = pc.is_in(self._shelf.column(stretch, "run_id"), value_set=owners)
            if pc.any(mask).as_py():
                mine = entries_of(self._shelf.rows(stretch).filter(mask))
                yield from (entry for entry in mine if entry.global_seq > place and _is_in(entry, pieces))

    def _remember(self, run_id: RunId, last: Entry) -> None:
        self._places[run_id, last.seq] = last.global_seq
        if len(self._places) > PLACES:
            self._places.popitem(last=False)


def _bounds(seen: LakeSnapshot) -> Bounds:
    return Bounds(GlobalSeq(1), seen.through)


def _matching(subjects: pa.ChunkedArray, pattern: Pattern) -> list[int]:
    span = pattern.prefix_range()
    if span is None:
        return [place for place, subject in enumerate(subjects.to_pylist()) if pattern.matches(subject)]
    mask = pc.and_(pc.greater_equal(subjects, span[0]), pc.less(subjects, span[1]))
    places = pc.indices_nonzero(mask)
    near = zip(places.to_pylist(), subjects.take(places).to_pylist(), strict=True)
    return [place for place, subject in near if pattern.matches(subject)]


def _is_in(entry: Entry, pieces: Sequence[Segment]) -> bool:
    return any(
        entry.run_id == run_id and first <= entry.seq and (last is None or entry.seq <= last)
        for run_id, first, last in pieces
    )


def _cut(entries: list[Entry]) -> list[Entry]:
    """As many as a page may weigh; one is always given."""
    room = PAGE_BYTES
    for number, entry in enumerate(entries):
        room -= entry.weight
        if room < 0 and number:
            return entries[:number]
    return entries

"""Which entries a stream is about: a run or the journal, from a place on, page by page, without a hole.

A selection knows how far it has come and in which epoch; whether what it is given is whole is judged here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from tape.core.errors import BrokerOverflowError, Corrupt, InvalidCursor
from tape.core.event import Entry
from tape.core.fork import Lineage, Segment, segments, surviving_from, unbroken_through
from tape.core.ids import Epoch, GlobalSeq, RunId, Seq
from tape.core.ports import NO_EPOCH, Bounds, RunPage, TermReader
from tape.core.run import Head
from tape.core.subject import Pattern
from tape.core.term import is_resumable

EntryFilter: TypeAlias = Callable[[Entry], bool]


class HistoryPage(NamedTuple):
    """A page of history, and the position up to which everything has been looked at (None: there is more)."""

    entries: Sequence[Entry]
    scanned_to: GlobalSeq | None
    is_over: bool


class Selection(Protocol):
    """Which entries a stream is about, how far it has come, and in which epoch."""

    @property
    def epoch(self) -> Epoch: ...
    @property
    def view(self) -> RunId | Pattern | None: ...
    @property
    def cursor(self) -> int: ...
    @property
    def is_whole(self) -> bool: ...
    @property
    def until(self) -> int | None: ...
    async def replay(self, reader: TermReader) -> HistoryPage: ...
    def observe_epoch(self, epoch: Epoch, last: int) -> bool: ...
    def seek(self, cursor: int) -> None: ...
    def take(self, entry: Entry) -> bool: ...
    def take_all(self, entries: Sequence[Entry]) -> Sequence[Entry]: ...
    def ends_at(self, closed_seq: Seq) -> bool: ...


class RunSelection:
    """A run, from a seq on, to its end."""

    def __init__(
        self, run_id: RunId, from_seq: int, follow: bool, accepts: EntryFilter | None, epoch: Epoch = NO_EPOCH
    ) -> None:
        self.view = run_id
        self.epoch = epoch
        self._after = Seq(max(from_seq, 1) - 1)
        self._follow = follow
        self._accepts = accepts
        self.until: Seq | None = None
        self._lineage: Lineage = ()

    @property
    def cursor(self) -> int:
        return self._after

    @property
    def is_whole(self) -> bool:
        """Whether it wants everything of its view."""
        return self._accepts is None

    def seek(self, cursor: int) -> None:
        self._after = Seq(cursor)

    def observe_epoch(self, epoch: Epoch, last: int) -> bool:
        """Notes where it ends, if it does not follow; False in another epoch than its own."""
        if self.epoch not in (NO_EPOCH, epoch):
            return False
        self.epoch = epoch
        if not self._follow and self.until is None:
            self.until = Seq(last)
        return True

    async def replay(self, reader: TermReader) -> HistoryPage:
        page = await self._page(reader)
        run = page.run or Head()
        if self.epoch not in (NO_EPOCH, page.epoch):
            await self._resume(reader, page)
        self.observe_epoch(page.epoch, run.last_seq)
        entries = self._whole(page, run)
        _check_dense(self._after, [entry.seq for entry in entries], run.last_seq, f"run {self.view!r}")
        found = self.take_all(_cut(entries, "seq", self.until))
        is_over = self._is_past(run.closed_seq) or self._is_past(self.until)
        return HistoryPage(found, page.bounds.head if self._is_past(run.last_seq) else None, is_over)

    async def _resume(self, reader: TermReader, page: RunPage) -> None:
        """Goes on in another term if the entry at its place is from before it.

        A child may have been forked again in that term, so its own first entry must be from before it, too.
        """
        own_first = self._lineage[-1].through_seq + 1 if self._lineage else 0
        place = await self._position(reader, Seq(max(self._after, own_first)))
        if place is None or not is_resumable(await reader.terms(), self.epoch, place):
            raise _of_another_epoch(self.epoch, page.epoch)
        self.epoch = page.epoch

    async def _position(self, reader: TermReader, seq: Seq) -> GlobalSeq | None:
        """Where an entry of the run is in the journal; None if it is not there."""
        if seq == 0:
            return GlobalSeq(0)
        pieces = segments(self._lineage, self.view, seq)
        page = await reader.read_run(self.view, Seq(seq - 1), pieces if len(pieces) > 1 else ())
        is_there = bool(page.entries) and page.entries[0].seq == seq
        return page.entries[0].global_seq if is_there else None

    async def _page(self, reader: TermReader) -> RunPage:
        """The next page. Of a run that turns out to inherit, it is read again: a lineage never changes."""
        page = await reader.read_run(self.view, self._after, self._segments())
        if page.run is not None and page.run.lineage != self._lineage:
            self._lineage = page.run.lineage
            if self._segments():
                return await reader.read_run(self.view, self._after, self._segments())
        return page

    def _segments(self) -> tuple[Segment, ...]:
        """Where to read on; nothing when that is in the run itself."""
        pieces = segments(self._lineage, self.view, self._after + 1)
        return pieces if len(pieces) > 1 else ()

    def _whole(self, page: RunPage, run: Head) -> Sequence[Entry]:
        """The entries of a page before a gap; a gap right at the beginning is raised."""
        self._check(run.last_seq)
        pieces = segments(self._lineage, self.view, self._after + 1)
        floors = {owner: max(floor, run.floor) for owner, floor in page.floors.items()} or {self.view: run.floor}
        available_from = surviving_from(pieces, floors)
        if self._after + 1 < available_from:
            raise BrokerOverflowError(self.view, self._after + 1, available_from)
        return _cut(page.entries, "seq", unbroken_through(pieces, floors))

    def take(self, entry: Entry) -> bool:
        """Goes past an entry; whether it is new and wanted."""
        if entry.seq <= self._after:
            return False
        self._after = entry.seq
        return self._accepts is None or self._accepts(entry)

    def take_all(self, entries: Sequence[Entry]) -> Sequence[Entry]:
        """Goes past entries in a row; those that are new and wanted."""
        if self._accepts is None and entries and entries[0].seq > self._after:
            self._after = entries[-1].seq
            return entries
        return [entry for entry in entries if self.take(entry)]

    def ends_at(self, closed_seq: Seq) -> bool:
        return self._after >= closed_seq

    def _is_past(self, seq: Seq | None) -> bool:
        return seq is not None and self._after >= seq

    def _check(self, last_seq: Seq) -> None:
        if self._after > last_seq:
            raise InvalidCursor(f"run {self.view!r} is at seq {last_seq}; nobody has been told of {self._after}")


class JournalSelection:
    """The whole journal or the subjects of a pattern, after a position."""

    def __init__(
        self, pattern: Pattern | None, after: int, follow: bool, accepts: EntryFilter | None, epoch: Epoch = NO_EPOCH
    ) -> None:
        self.view = pattern
        self.epoch = epoch
        self._after = GlobalSeq(after)
        self._follow = follow
        self._accepts = accepts
        self.until: GlobalSeq | None = None

    @property
    def cursor(self) -> int:
        return self._after

    @property
    def is_whole(self) -> bool:
        """Whether it wants everything of its view."""
        return self._accepts is None

    def seek(self, cursor: int) -> None:
        self._after = GlobalSeq(cursor)

    def observe_epoch(self, epoch: Epoch, last: int) -> bool:
        """Notes where it ends, if it does not follow; False in another epoch than its own."""
        if self.epoch not in (NO_EPOCH, epoch):
            return False
        self.epoch = epoch
        if not self._follow and self.until is None:
            self.until = GlobalSeq(last)
        return True

    async def replay(self, reader: TermReader) -> HistoryPage:
        page = await reader.read(self._after, pattern=self.view)
        if self.epoch not in (NO_EPOCH, page.epoch):
            await self._resume(reader, page.epoch)
        self.observe_epoch(page.epoch, page.bounds.head)
        self._check(page.bounds)
        found = self.take_all(_cut(page.entries, "global_seq", self.until))
        self._after = page.scanned_to
        is_over = self.until is not None and self._after >= self.until
        return HistoryPage(found, self._after if self._after >= page.bounds.head else None, is_over)

    def take(self, entry: Entry) -> bool:
        """Goes past an entry; whether it is new and wanted."""
        if entry.global_seq <= self._after:
            return False
        self._after = entry.global_seq
        return self._accepts is None or self._accepts(entry)

    def take_all(self, entries: Sequence[Entry]) -> Sequence[Entry]:
        """Goes past entries in a row; those that are new and wanted."""
        if self._accepts is None and entries and entries[0].global_seq > self._after:
            self._after = entries[-1].global_seq
            return entries
        return [entry for entry in entries if self.take(entry)]

    def ends_at(self, closed_seq: Seq) -> bool:
        return False

    async def _resume(self, reader: TermReader, epoch: Epoch) -> None:
        """Goes on in another term if its place is from before it."""
        if not is_resumable(await reader.terms(), self.epoch, self._after):
            raise _of_another_epoch(self.epoch, epoch)
        self.epoch = epoch

    def _check(self, bounds: Bounds) -> None:
        if self._after + 1 < bounds.floor:
            raise BrokerOverflowError(None, self._after + 1, bounds.floor)
        if self._after > bounds.head:
            raise InvalidCursor(f"the journal is at {bounds.head}; nobody has been told of {self._after}")


def _of_another_epoch(known: Epoch, epoch: Epoch) -> InvalidCursor:
    return InvalidCursor(f"the journal is of epoch {epoch} now; a cursor of {known} means nothing in it: start over")


def _check_dense(after: int, places: Sequence[int], last: int, where: str) -> None:
    """A missing seq is an error: nothing may be passed over in silence."""
    is_dense = places[-1] - after == len(places) if places else after >= last
    if not is_dense:
        missing = next((n for n, place in enumerate(places, after + 1) if place != n), after + 1)
        raise Corrupt(f"{missing} is missing in {where}; tape journal verify tells more")


def _cut(entries: Sequence[Entry], by: str, until: int | None) -> Sequence[Entry]:
    """What lies at or before an end."""
    if until is None or not entries or getattr(entries[-1], by) <= until:
        return entries
    return [entry for entry in entries if getattr(entry, by) <= until]

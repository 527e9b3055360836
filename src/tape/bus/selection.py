"""Selects the entries of one stream: those of a run or of the journal, after a cursor.

A selection tracks how far its stream has read and in which epoch, and checks that the pages it reads have no hole.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar, NamedTuple, Protocol, TypeAlias

from tape.core.errors import BrokerOverflowError, Corrupt, InvalidCursor
from tape.core.event import Entry
from tape.core.fork import Lineage, Segment, segments, surviving_from, unbroken_through
from tape.core.ids import Epoch, GlobalSeq, RunId, Seq
from tape.core.ports import NO_EPOCH, Bounds, RunPage, TermReader
from tape.core.run import Head
from tape.core.subject import Pattern
from tape.core.term import Term, is_resumable

EntryFilter: TypeAlias = Callable[[Entry], bool]


class HistoryPage(NamedTuple):
    """Entries of history; `scanned_to` is the position up to which everything was read, None when there is more."""

    entries: Sequence[Entry]
    scanned_to: GlobalSeq | None
    is_over: bool


class RunHistory(Protocol):
    """What the stream of a run needs of a `TermReader`."""

    async def read_run(self, run_id: RunId, after: Seq, segments: Sequence[Segment] = ()) -> RunPage: ...
    async def terms(self) -> Sequence[Term]: ...


class Selection(ABC):
    """The filter and the cursor of one stream, and the history it reads.

    `key` names the view of the tail that the stream continues in. `until` is the last place of a stream that does not
    follow, as soon as it is known.
    """

    _by: ClassVar[str]

    def __init__(
        self,
        key: RunId | Pattern | None,
        after: int,
        follow: bool,
        accepts: EntryFilter | None,
        epoch: Epoch,
    ) -> None:
        self.key = key
        self.cursor = after
        self.epoch = epoch
        self.until: int | None = None
        self._follow = follow
        self._accepts = accepts

    @property
    def is_unfiltered(self) -> bool:
        """Whether it takes every entry of its view."""
        return self._accepts is None

    def observe_epoch(self, epoch: Epoch, last: int) -> bool:
        """Records the epoch and, unless the stream follows, its end; False if the cursor is of another epoch."""
        if self.epoch not in (NO_EPOCH, epoch):
            return False
        self.epoch = epoch
        if not self._follow and self.until is None:
            self.until = last
        return True

    @abstractmethod
    async def replay(self) -> HistoryPage:
        """Reads the next page of history and moves the cursor behind it."""

    @abstractmethod
    def take(self, entry: Entry) -> bool:
        """Moves the cursor past an entry; whether the entry is new and passes the filter."""

    @abstractmethod
    def ends_at(self, closed_seq: Seq) -> bool:
        """Whether the stream has sent everything of a run that was closed at a seq."""

    def take_all(self, entries: Sequence[Entry]) -> Sequence[Entry]:
        """Moves the cursor past consecutive entries; returns those that are new and pass the filter."""
        if self._accepts is None and entries and getattr(entries[0], self._by) > self.cursor:
            self.cursor = getattr(entries[-1], self._by)
            return entries
        return [entry for entry in entries if self.take(entry)]

    def _up_to(self, entries: Sequence[Entry], last: int | None) -> Sequence[Entry]:
        if last is None or not entries or getattr(entries[-1], self._by) <= last:
            return entries
        return [entry for entry in entries if getattr(entry, self._by) <= last]

    def _has_reached(self, place: int | None) -> bool:
        return place is not None and self.cursor >= place


class RunSelection(Selection):
    """A run from a seq on, until the run is closed."""

    _by = "seq"

    def __init__(
        self,
        history: RunHistory,
        run_id: RunId,
        from_seq: int = 1,
        follow: bool = True,
        accepts: EntryFilter | None = None,
        epoch: Epoch = NO_EPOCH,
    ) -> None:
        super().__init__(run_id, max(from_seq, 1) - 1, follow, accepts, epoch)
        self._history = history
        self._run_id = run_id
        self._lineage: Lineage = ()

    async def replay(self) -> HistoryPage:
        page = await self._page()
        run = page.run or Head()
        if self.epoch not in (NO_EPOCH, page.epoch):
            await self._resume(page)
        self.observe_epoch(page.epoch, run.last_seq)
        entries = self._before_gap(page, run)
        _check_dense(self.cursor, [entry.seq for entry in entries], run.last_seq, f"run {self._run_id!r}")
        found = self.take_all(self._up_to(entries, self.until))
        is_over = self._has_reached(run.closed_seq) or self._has_reached(self.until)
        return HistoryPage(found, page.bounds.head if self._has_reached(run.last_seq) else None, is_over)

    def take(self, entry: Entry) -> bool:
        if entry.seq <= self.cursor:
            return False
        self.cursor = entry.seq
        return self._accepts is None or self._accepts(entry)

    def ends_at(self, closed_seq: Seq) -> bool:
        return self.cursor >= closed_seq

    async def _resume(self, page: RunPage) -> None:
        """Continues in a new term if the entry at the cursor is from before that term.

        A child may have been forked again in the new term, so its first own entry must be from before it, too.
        """
        own_first = self._lineage[-1].through_seq + 1 if self._lineage else 0
        position = await self._position(Seq(max(self.cursor, own_first)))
        if position is None or not is_resumable(await self._history.terms(), self.epoch, position):
            raise _epoch_changed(self.epoch, page.epoch)
        self.epoch = page.epoch

    async def _position(self, seq: Seq) -> GlobalSeq | None:
        """The global_seq of an entry of the run; None if the run has no such entry."""
        if seq == 0:
            return GlobalSeq(0)
        page = await self._history.read_run(self._run_id, Seq(seq - 1), self._segments(seq))
        is_there = bool(page.entries) and page.entries[0].seq == seq
        return page.entries[0].global_seq if is_there else None

    async def _page(self) -> RunPage:
        """Reads the next page; if the run turns out to be a fork, reads it again by its segments."""
        after, first = Seq(self.cursor), self.cursor + 1
        page = await self._history.read_run(self._run_id, after, self._segments(first))
        if page.run is not None and page.run.lineage != self._lineage:
            self._lineage = page.run.lineage
            if pieces := self._segments(first):
                return await self._history.read_run(self._run_id, after, pieces)
        return page

    def _segments(self, first: int) -> tuple[Segment, ...]:
        """The segments to read from a seq on; none when the run itself holds all of them."""
        pieces = segments(self._lineage, self._run_id, first)
        return pieces if len(pieces) > 1 else ()

    def _before_gap(self, page: RunPage, run: Head) -> Sequence[Entry]:
        """The entries of a page before a gap; raises a gap that begins at the cursor."""
        if self.cursor > run.last_seq:
            raise InvalidCursor(f"run {self._run_id!r} is at seq {run.last_seq}; there is no {self.cursor} yet")
        pieces = segments(self._lineage, self._run_id, self.cursor + 1)
        floors = {owner: max(floor, run.floor) for owner, floor in page.floors.items()} or {self._run_id: run.floor}
        available_from = surviving_from(pieces, floors)
        if self.cursor + 1 < available_from:
            raise BrokerOverflowError(self._run_id, self.cursor + 1, available_from)
        return self._up_to(page.entries, unbroken_through(pieces, floors))


class JournalSelection(Selection):
    """The whole journal or the subjects of a pattern, after a position."""

    _by = "global_seq"

    def __init__(
        self,
        history: TermReader,
        pattern: Pattern | None,
        after: int,
        follow: bool = True,
        accepts: EntryFilter | None = None,
        epoch: Epoch = NO_EPOCH,
    ) -> None:
        super().__init__(pattern, after, follow, accepts, epoch)
        self._history = history
        self._pattern = pattern

    async def replay(self) -> HistoryPage:
        page = await self._history.read(GlobalSeq(self.cursor), pattern=self._pattern)
        if self.epoch not in (NO_EPOCH, page.epoch):
            await self._resume(page.epoch)
        self.observe_epoch(page.epoch, page.bounds.head)
        self._check(page.bounds)
        found = self.take_all(self._up_to(page.entries, self.until))
        self.cursor = page.scanned_to
        is_at_head = self.cursor >= page.bounds.head
        return HistoryPage(found, page.scanned_to if is_at_head else None, self._has_reached(self.until))

    def take(self, entry: Entry) -> bool:
        if entry.global_seq <= self.cursor:
            return False
        self.cursor = entry.global_seq
        return self._accepts is None or self._accepts(entry)

    def ends_at(self, closed_seq: Seq) -> bool:
        return False

    async def _resume(self, epoch: Epoch) -> None:
        """Continues in a new term if the cursor is from before that term."""
        if not is_resumable(await self._history.terms(), self.epoch, GlobalSeq(self.cursor)):
            raise _epoch_changed(self.epoch, epoch)
        self.epoch = epoch

    def _check(self, bounds: Bounds) -> None:
        if self.cursor + 1 < bounds.floor:
            raise BrokerOverflowError(None, self.cursor + 1, bounds.floor)
        if self.cursor > bounds.head:
            raise InvalidCursor(f"the journal is at {bounds.head}; there is no {self.cursor} yet")


def _epoch_changed(known: Epoch, epoch: Epoch) -> InvalidCursor:
    return InvalidCursor(f"the journal is of epoch {epoch} now; a cursor of {known} means nothing in it: start over")


def _check_dense(after: int, places: Sequence[int], last: int, where: str) -> None:
    """A missing seq is an error: no stream skips an entry silently."""
    is_dense = places[-1] - after == len(places) if places else after >= last
    if not is_dense:
        missing = next((n for n, place in enumerate(places, after + 1) if place != n), after + 1)
        raise Corrupt(f"{missing} is missing in {where}; tape journal verify tells more")

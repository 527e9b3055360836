"""The only way to read: replay and then live, in one call, in order, once each.

A stream starts in the journal, or in the lake where the journal no longer reaches back (`history` makes one reader of
the two), and goes on in the shared tail; a reader that the tail has overtaken goes back. Nobody else knows the
difference.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from tape.bus.tail import Tail
from tape.core.errors import BrokerOverflowError, Corrupt, InvalidCursor
from tape.core.event import Entry
from tape.core.fork import Lineage, Segment, segments, surviving_from, unbroken_through
from tape.core.ids import GlobalSeq, RunId, Seq
from tape.core.ports import Bounds, Reader, RunPage
from tape.core.run import Head
from tape.core.subject import Pattern

Admits: TypeAlias = Callable[[Entry], bool]
Stream: TypeAlias = AsyncGenerator[Entry, None]


class Replay(NamedTuple):
    """A page of history, and the position up to which everything has been looked at (None: there is more)."""

    entries: Sequence[Entry]
    looked_to: GlobalSeq | None
    is_over: bool


class Selection(Protocol):
    """Which entries a stream is about, and how far it has come."""

    @property
    def lane(self) -> RunId | Pattern | None: ...
    @property
    def cursor(self) -> int: ...
    async def replay(self, reader: Reader) -> Replay: ...
    def take(self, entry: Entry) -> bool: ...
    def ends_at(self, closed_seq: Seq) -> bool: ...


class RunSelection:
    """A run, from a seq on, to its end."""

    def __init__(self, run_id: RunId, from_seq: int, follow: bool, admits: Admits | None) -> None:
        self.lane = run_id
        self._after = Seq(max(from_seq, 1) - 1)
        self._follow = follow
        self._admits = admits
        self._until: Seq | None = None
        self._lineage: Lineage = ()

    @property
    def cursor(self) -> int:
        return self._after

    async def replay(self, reader: Reader) -> Replay:
        page = await self._page(reader)
        run = page.run or Head()
        entries = self._whole(page, run)
        _check_dense(self._after, [entry.seq for entry in entries], run.last_seq, f"run {self.lane!r}")
        if not self._follow and self._until is None:
            self._until = run.last_seq
        found = [entry for entry in _cut(entries, "seq", self._until) if self.take(entry)]
        is_over = self._is_past(run.closed_seq) or self._is_past(self._until)
        return Replay(found, page.bounds.head if self._is_past(run.last_seq) else None, is_over)

    async def _page(self, reader: Reader) -> RunPage:
        """The next page. Of a run that turns out to inherit, it is read again: a lineage never changes."""
        page = await reader.read_run(self.lane, self._after, self._segments())
        if page.run is not None and page.run.lineage != self._lineage:
            self._lineage = page.run.lineage
            if self._segments():
                return await reader.read_run(self.lane, self._after, self._segments())
        return page

    def _segments(self) -> tuple[Segment, ...]:
        """Where to read on; nothing when that is in the run itself."""
        pieces = segments(self._lineage, self.lane, self._after + 1)
        return pieces if len(pieces) > 1 else ()

    def _whole(self, page: RunPage, run: Head) -> Sequence[Entry]:
        """The entries of a page before a gap; a gap right at the beginning is raised."""
        self._check(run.last_seq)
        pieces = segments(self._lineage, self.lane, self._after + 1)
        floors = {owner: max(floor, run.floor) for owner, floor in page.floors.items()} or {self.lane: run.floor}
        available_from = surviving_from(pieces, floors)
        if self._after + 1 < available_from:
            raise BrokerOverflowError(self.lane, self._after + 1, available_from)
        return _cut(page.entries, "seq", unbroken_through(pieces, floors))

    def take(self, entry: Entry) -> bool:
        """Goes past an entry; whether it is new and wanted."""
        if entry.seq <= self._after:
            return False
        self._after = entry.seq
        return self._admits is None or self._admits(entry)

    def ends_at(self, closed_seq: Seq) -> bool:
        return self._after >= closed_seq

    def _is_past(self, seq: Seq | None) -> bool:
        return seq is not None and self._after >= seq

    def _check(self, last_seq: Seq) -> None:
        if self._after > last_seq:
            raise InvalidCursor(f"run {self.lane!r} is at seq {last_seq}; nobody has been told of {self._after}")


class JournalSelection:
    """The whole journal or the subjects of a pattern, after a position."""

    def __init__(self, pattern: Pattern | None, after: int, follow: bool, admits: Admits | None) -> None:
        self.lane = pattern
        self._after = GlobalSeq(after)
        self._follow = follow
        self._admits = admits
        self._until: GlobalSeq | None = None

    @property
    def cursor(self) -> int:
        return self._after

    async def replay(self, reader: Reader) -> Replay:
        page = await reader.read(self._after, pattern=self.lane)
        self._check(page.bounds)
        if self.lane is None:
            _check_dense(self._after, [entry.global_seq for entry in page.entries], page.bounds.head, "the journal")
        if not self._follow and self._until is None:
            self._until = page.bounds.head
        found = [entry for entry in _cut(page.entries, "global_seq", self._until) if self.take(entry)]
        self._after = page.scanned_to
        is_over = self._until is not None and self._after >= self._until
        return Replay(found, self._after if self._after >= page.bounds.head else None, is_over)

    def take(self, entry: Entry) -> bool:
        """Goes past an entry; whether it is new and wanted."""
        if entry.global_seq <= self._after:
            return False
        self._after = entry.global_seq
        return self._admits is None or self._admits(entry)

    def ends_at(self, closed_seq: Seq) -> bool:
        return False

    def _check(self, bounds: Bounds) -> None:
        if self._after + 1 < bounds.floor:
            raise BrokerOverflowError(None, self._after + 1, bounds.floor)
        if self._after > bounds.head:
            raise InvalidCursor(f"the journal is at {bounds.head}; nobody has been told of {self._after}")


class Reading:
    """One reader's place, for who takes entries by the handful: pages of history first, then what the tail has.

    It sees everything from the moment it is made, and is closed by who made it.
    """

    __slots__ = ("_is_of_run", "_lane", "_listener", "_place", "_reader", "_selection", "_tail")

    def __init__(self, selection: Selection, reader: Reader, tail: Tail) -> None:
        self._selection = selection
        self._reader = reader
        self._tail = tail
        self._lane = tail.join(selection.lane)
        self._is_of_run = isinstance(selection.lane, str)
        self._place = -1
        self._listener: Callable[[], None] | None = None

    async def replay(self) -> Replay:
        """The next page of history; when it says how far it looked, what follows is taken from the tail."""
        page = await self._selection.replay(self._reader)
        self._place = self._lane.after(page.looked_to)
        return page

    @property
    def is_overtaken(self) -> bool:
        """Whether the tail no longer reaches back to its place: history must be asked again."""
        return self._place < self._lane.base

    @property
    def has_more(self) -> bool:
        """Whether the tail has something that it has not looked at."""
        return 0 <= self._place - self._lane.base < len(self._lane.entries)

    def take(self, most: int) -> list[Entry] | None:
        """What the tail has and it wants, looking at no more than so many; None when there is nothing to look at."""
        index = self._place - self._lane.base
        found = self._lane.entries[index : index + most] if index >= 0 else ()
        if not found:
            return None
        self._place += len(found)
        return [entry for entry in found if self._selection.take(entry)]

    @property
    def lag(self) -> tuple[int, int]:
        """How far it is behind the tail's end, in entries and bytes."""
        return self._lane.lag(self._place)

    @property
    def cursor(self) -> int:
        """The place up to which everything has been looked at."""
        is_current = self._place == self._lane.base + len(self._lane.entries)
        return max(self._selection.cursor, self._tail.head if is_current and not self._is_of_run else 0)

    @property
    def is_over(self) -> bool:
        closed_seq = self._lane.closed_seq
        return closed_seq is not None and self._selection.ends_at(closed_seq)

    @property
    def is_cut(self) -> bool:
        """Whether the journal was closed, and nothing will come any more."""
        return self._lane.is_cut

    def listen(self, listener: Callable[[], None]) -> None:
        """Has it called whenever there may be more to take, or an end. It must not fail."""
        self._listener = listener
        self._lane.listeners.add(listener)

    def close(self) -> None:
        if self._listener is not None:
            self._lane.listeners.discard(self._listener)
        self._tail.leave(self._selection.lane, self._lane)


async def stream(selection: Selection, reader: Reader, tail: Tail) -> Stream:
    """What a selection sees. Close it, or let it go: both free its place.

    Live, an entry costs each reader one frame and two calls: whatever is added here, a thousand readers pay for.
    """
    lane = tail.join(selection.lane)
    waiter = None
    try:
        while True:
            page = await selection.replay(reader)
            for entry in page.entries:
                yield entry
            if page.is_over:
                return
            place = lane.after(page.looked_to)
            while (index := place - lane.base) >= 0:
                if index < len(lane.entries):
                    place += 1
                    entry = lane.entries[index]
                    if selection.take(entry):
                        yield entry
                elif lane.closed_seq is not None and selection.ends_at(lane.closed_seq):
                    return
                else:
                    waiter = lane.wait()
                    await waiter
    finally:
        lane.forget(waiter)
        tail.leave(selection.lane, lane)


def _check_dense(after: int, places: Sequence[int], last: int, where: str) -> None:
    """A hole is an alarm: nothing may be passed over in silence."""
    is_dense = places[-1] - after == len(places) if places else after >= last
    if not is_dense:
        missing = next((n for n, place in enumerate(places, after + 1) if place != n), after + 1)
        raise Corrupt(f"{missing} is missing in {where}; tape journal verify tells more")


def _cut(entries: Sequence[Entry], by: str, until: int | None) -> Sequence[Entry]:
    """What lies at or before an end."""
    if until is None or not entries or getattr(entries[-1], by) <= until:
        return entries
    return [entry for entry in entries if getattr(entry, by) <= until]

"""The only way to read: replay and then live, in one call, in order, once each.

A stream starts in the journal, or in the lake where the journal no longer reaches back (`history` makes one reader of
the two), and goes on in the shared tail; a reader that the tail has overtaken goes back. Nobody else knows the
difference.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from copy import copy
from typing import TypeAlias

from tape.bus.selection import HistoryPage, Selection
from tape.bus.tail import Tail, TailView
from tape.core.event import Entry
from tape.core.ids import Epoch
from tape.core.ports import TermReader

Stream: TypeAlias = AsyncGenerator[Entry, None]


class StreamReader:
    """One reader's place, for who takes entries by the batch: pages of history first, then what the tail has.

    It sees everything from the moment it is made, and is closed by who made it.
    """

    __slots__ = ("_is_of_run", "_listener", "_place", "_reader", "_selection", "_tail", "view")

    def __init__(self, selection: Selection, reader: TermReader, tail: Tail) -> None:
        self._selection = selection
        self._reader = reader
        self._tail = tail
        self.view = tail.join(selection.view)
        self._is_of_run = isinstance(selection.view, str)
        self._place = -1
        self._listener: Callable[[], None] | None = None

    async def replay(self) -> HistoryPage:
        """The next page of history; when it says how far it looked, what follows is taken from the tail."""
        page = await self._selection.replay(self._reader)
        self._place = _place(self.view, self._tail, page, self._selection.epoch)
        return page

    @property
    def is_overtaken(self) -> bool:
        """Whether the tail no longer reaches back to its place: history must be asked again."""
        return self._place < self.view.base

    @property
    def has_more(self) -> bool:
        """Whether the tail has something that it has not looked at."""
        return 0 <= self._place - self.view.base < len(self.view.entries)

    def take(self, most: int) -> Sequence[Entry] | None:
        """What the tail has and it wants, looking at no more than so many; None when there is nothing to look at."""
        found = self.view.batch(self._place, most)
        if not found:
            return None
        self._place += len(found)
        return self._selection.take_all(found)

    @property
    def until(self) -> int | None:
        """The last place it goes to; None while that is not known, and for who follows."""
        return self._selection.until

    @property
    def epoch(self) -> Epoch:
        """The epoch that its place is of; 0 before the first page of a beginning."""
        return self._selection.epoch

    def observe_epoch(self, epoch: Epoch, last: int) -> bool:
        """Notes where the journal ends, for who does not read it all here; False if its place is of another epoch."""
        return self._selection.observe_epoch(epoch, last)

    def seek(self, cursor: int) -> None:
        """Goes on in history after a place: what lies before, its reader has from elsewhere, or will ask for again."""
        self._selection.seek(cursor)
        self._place = -1

    @property
    def lag(self) -> tuple[int, int]:
        """How far it is behind the tail's end, in entries and bytes."""
        return self.view.lag(self._place)

    @property
    def cursor(self) -> int:
        """The place up to which everything has been looked at."""
        is_current = self._place == self.view.base + len(self.view.entries)
        return max(self._selection.cursor, self._tail.head if is_current and not self._is_of_run else 0)

    @property
    def is_over(self) -> bool:
        closed_seq = self.view.closed_seq
        return closed_seq is not None and self._selection.ends_at(closed_seq)

    @property
    def is_journal_closed(self) -> bool:
        """Whether the journal was closed, and nothing will come any more."""
        return self.view.is_journal_closed

    def listen(self, listener: Callable[[], None]) -> None:
        """Has it called whenever there may be more to take, or an end. It must not fail."""
        self._listener = listener
        self.view.listeners.add(listener)

    def ignore(self) -> None:
        """Is not called any more."""
        if self._listener is not None:
            self.view.listeners.discard(self._listener)
            self._listener = None

    @property
    def is_whole(self) -> bool:
        """Whether it wants everything of its view, so that all who are at its place want the same."""
        return self._selection.is_whole

    def is_at_same_position(self, other: StreamReader) -> bool:
        """Whether both need the same from now on: who has read history beyond the tail needs less of what comes."""
        return self._place == other._place and self.cursor == other.cursor

    def clone(self) -> StreamReader:
        """Another reader at the same place."""
        other = StreamReader(copy(self._selection), self._reader, self._tail)
        other._place = self._place
        return other

    def move_to(self, other: StreamReader) -> None:
        """Goes to the place of another reader of its view, without looking at what lies between."""
        self._place = other._place
        self._selection.seek(other._selection.cursor)

    def close(self) -> None:
        self.ignore()
        self._tail.leave(self._selection.view, self.view)


async def stream(selection: Selection, reader: TermReader, tail: Tail) -> Stream:
    """What a selection sees. Close it, or let it go: both free its place.

    Live, an entry costs each reader one frame and two calls: whatever is added here, a thousand readers pay for.
    """
    view = tail.join(selection.view)
    waiter = None
    try:
        while True:
            page = await selection.replay(reader)
            for entry in page.entries:
                yield entry
            if page.is_over:
                return
            place = _place(view, tail, page, selection.epoch)
            while (index := place - view.base) >= 0:
                if index < len(view.entries):
                    place += 1
                    entry = view.entries[index]
                    if selection.take(entry):
                        yield entry
                elif view.closed_seq is not None and selection.ends_at(view.closed_seq):
                    return
                else:
                    waiter = view.wait()
                    await waiter
    finally:
        view.forget(waiter)
        tail.leave(selection.view, view)


def _place(view: TailView, tail: Tail, page: HistoryPage, epoch: Epoch) -> int:
    """Where a view goes on after a page; nowhere while the tail is of another epoch, whose positions mean nothing."""
    if page.scanned_to is None or not tail.observe_epoch(epoch, page.scanned_to):
        return -1
    return view.after(page.scanned_to)

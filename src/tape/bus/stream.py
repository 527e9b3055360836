"""Reads a stream: replay and then live, in one call, in order, each entry once.

A stream starts in history (the journal, or the lake where the journal no longer reaches back) and continues in the
shared tail. A reader that the tail has overtaken goes back to history. Callers do not notice the difference.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from copy import copy
from typing import Final, TypeAlias

from tape.bus.selection import HistoryPage, JournalSelection, Selection
from tape.bus.tail import BATCH_BYTES, BYTES, Tail
from tape.core.event import Entry
from tape.core.ids import GlobalSeq
from tape.core.ports import Bounds, Page, TermReader
from tape.core.subject import Pattern

PAGE: Final = 512

Stream: TypeAlias = AsyncGenerator[Entry, None]


class StreamReader:
    """The one reader of the tail: pages of history by `replay`, then batches of the tail by `take`.

    It misses nothing from the moment it is made, and must be closed. `next` is the number of the next entry in its
    view; -1 sends it back to history.
    """

    __slots__ = ("_is_of_run", "_listener", "_tail", "next", "selection", "view")

    def __init__(self, selection: Selection, tail: Tail) -> None:
        self.selection = selection
        self._tail = tail
        self.view = tail.join(selection.key)
        self._is_of_run = isinstance(selection.key, str)
        self.next = -1
        self._listener: Callable[[], None] | None = None

    async def replay(self) -> HistoryPage:
        """Reads the next page of history; the tail follows a page that has `scanned_to`.

        Positions of a tail in another epoch mean nothing, so such a tail does not follow.
        """
        page = await self.selection.replay()
        is_at_tail = page.scanned_to is not None and self._tail.observe_epoch(self.selection.epoch, page.scanned_to)
        self.next = self.view.after(page.scanned_to) if is_at_tail else -1
        return page

    @property
    def is_overtaken(self) -> bool:
        """Whether the tail no longer reaches back to the cursor, so that history must be read again."""
        return self.next < self.view.base

    @property
    def has_more(self) -> bool:
        """Whether the tail holds entries after the cursor."""
        return 0 <= self.next - self.view.base < len(self.view.entries)

    def take(self, limit: int, max_bytes: int = BATCH_BYTES) -> Sequence[Entry] | None:
        """Selected entries of the tail's next batch of at most `limit`; None when there is no next batch."""
        found = self.view.batch(self.next, limit, max_bytes)
        if not found:
            return None
        self.next += len(found)
        return self.selection.take_all(found)

    def seek(self, cursor: int) -> None:
        """Continues in history after a cursor."""
        self.selection.cursor = cursor
        self.next = -1

    def seek_in_tail(self, position: GlobalSeq) -> None:
        """Continues in the tail after a position, if the tail reaches back to it."""
        self.selection.cursor = position
        self.next = self.view.after(position)

    @property
    def lag(self) -> tuple[int, int]:
        """How far it is behind the tail's end, in entries and bytes."""
        return self.view.lag(self.next)

    @property
    def cursor(self) -> int:
        """The place up to which everything has been read; entries that were filtered out count as read."""
        is_current = self.next == self.view.base + len(self.view.entries)
        return max(self.selection.cursor, self._tail.head if is_current and not self._is_of_run else 0)

    @property
    def is_over(self) -> bool:
        closed_seq = self.view.closed_seq
        return closed_seq is not None and self.selection.ends_at(closed_seq)

    def listen(self, listener: Callable[[], None]) -> None:
        """Calls the listener whenever there may be more to take, or an end. It must not raise."""
        self._listener = listener
        self.view.listeners.add(listener)

    def stop_listening(self) -> None:
        if self._listener is not None:
            self.view.listeners.discard(self._listener)
            self._listener = None

    async def wait(self) -> None:
        """Returns when there may be more to take, or an end."""
        waiter = self.view.wait()
        try:
            await waiter
        finally:
            self.view.forget(waiter)

    def is_at_same_position(self, other: StreamReader) -> bool:
        """Whether both will take the same entries; a reader whose history went beyond the tail will skip some."""
        return self.next == other.next and self.cursor == other.cursor

    def clone(self) -> StreamReader:
        """Another reader at the same position."""
        other = StreamReader(copy(self.selection), self._tail)
        other.next = self.next
        return other

    def move_to(self, other: StreamReader) -> None:
        """Takes over the position of another reader of the same view."""
        self.next = other.next
        self.selection.cursor = other.selection.cursor

    def close(self) -> None:
        self.stop_listening()
        self._tail.leave(self.selection.key, self.view)


async def stream(selection: Selection, tail: Tail) -> Stream:
    """The entries of a selection; closing the generator, or dropping it, closes its reader.

    Live, an entry costs each reader one frame and two calls: a thousand readers pay for whatever is added here.
    """
    reader = StreamReader(selection, tail)
    view = reader.view
    waiter = None
    try:
        while True:
            page = await reader.replay()
            for entry in page.entries:
                yield entry
            if page.is_over:
                return
            while (index := reader.next - view.base) >= 0:
                if index < len(view.entries):
                    reader.next += 1
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
        reader.close()


class JournalPages:
    """Pages of the journal or of a pattern's subjects after any position, from the tail if it reaches back to it.

    The matcher reads them, so that entries which this process appended are not read from the store again.
    """

    def __init__(self, history: TermReader, tail: Tail) -> None:
        self._history = history
        self._tail = tail
        self._pattern: Pattern | None = None
        self._reader: StreamReader | None = None

    async def read(self, after: GlobalSeq, *, pattern: Pattern | None = None) -> Page:
        reader = self._reader_at(after, pattern)
        if reader.is_overtaken:
            return await self._history.read(after, pattern=pattern)
        entries = reader.take(PAGE, BYTES) or ()
        return Page(entries, GlobalSeq(reader.cursor), Bounds(GlobalSeq(1), self._tail.head), None, self._tail.epoch)

    async def wait(self, beyond: GlobalSeq) -> None:
        """Returns when the last pattern may have entries beyond a position."""
        reader = self._reader_at(beyond, self._pattern)
        if not reader.is_overtaken and not reader.has_more:
            await reader.wait()

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _reader_at(self, position: GlobalSeq, pattern: Pattern | None) -> StreamReader:
        if self._reader is None or pattern != self._pattern:
            self.close()
            self._pattern = pattern
            self._reader = StreamReader(JournalSelection(self._history, pattern, position), self._tail)
        self._reader.seek_in_tail(position)
        return self._reader

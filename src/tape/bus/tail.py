"""The shared tail: the newest entries of the journal, once for the whole process.

A reader holds nothing but its place in a view. A view is what one selection sees of the tail, shared by all readers of
that selection, so an entry is matched once and wakes only the readers it is for.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Final

from tape.core.errors import Unavailable
from tape.core.event import Entry
from tape.core.fork import FORK, RUN
from tape.core.ids import Epoch, GlobalSeq, RunId, Seq
from tape.core.ports import NO_EPOCH
from tape.core.run import Head
from tape.core.subject import Pattern
from tape.core.trie import Trie

ENTRIES: Final = 8_192
BYTES: Final = 64 << 20
SWEEP: Final = 8
BATCH_BYTES: Final = 32 * 1024
HELD: Final = 4  # times its weight, an entry with both frames that are made of it once for all its readers

_position = attrgetter("global_seq")


class TailView:
    """Everything of one selection after `since`, as far as the tail still holds it, numbered from `base` on."""

    __slots__ = (
        "_is_telling", "_loop", "_weights", "base", "closed_seq", "entries", "is_journal_closed", "listeners",
        "opened_seq", "readers", "since", "waiting",
    )  # fmt: skip

    def __init__(self, since: GlobalSeq) -> None:
        self.since = since
        self.readers = 0
        self.is_journal_closed = False
        self.opened_seq = Seq(0)
        self.closed_seq: Seq | None = None
        self.waiting: set[asyncio.Future[None]] = set()
        self.listeners: set[Callable[[], None]] = set()
        self.entries: list[Entry] = []
        self._weights = [0]
        self.base = 0
        self._is_telling = False
        # Before Python 3.12 asking for the running loop is a system call, dearer than all the rest of a wait.
        self._loop = asyncio.get_running_loop()

    def after(self, cursor: GlobalSeq | None) -> int:
        """The number of what follows a position, below `base` when the view does not reach back to it."""
        if cursor is None or cursor < self.since:
            return -1
        return self.base + bisect_right(self.entries, cursor, key=_position)

    def lag(self, number: int) -> tuple[int, int]:
        """How far an entry's number is behind the end, in entries and bytes."""
        first = max(number - self.base, 0)
        return len(self.entries) - first, self._weights[-1] - self._weights[first]

    def batch(self, number: int, most: int) -> Sequence[Entry]:
        """Entries from a number on, so many at most and about as many bytes as a socket takes at once, or one."""
        first = number - self.base
        if not 0 <= first < len(self.entries):
            return ()
        last = min(first + most, len(self.entries))
        enough = bisect_right(self._weights, self._weights[first] + BATCH_BYTES, first + 1, last)
        return self.entries[first:enough]

    def wait(self) -> asyncio.Future[None]:
        """Done when there may be more to read, or an end."""
        if self.is_journal_closed:
            raise Unavailable("the journal was closed")
        future = self._loop.create_future()
        self.waiting.add(future)
        return future

    def forget(self, waiter: asyncio.Future[None] | None) -> None:
        """Stops waiting."""
        if waiter is not None:
            self.waiting.discard(waiter)

    def add(self, entry: Entry, size: int) -> None:
        self.entries.append(entry)
        self._weights.append(self._weights[-1] + size)
        if self.closed_seq is not None and entry.seq > self.closed_seq:
            self.closed_seq = None  # the run has been opened again

    def drop(self, through: GlobalSeq) -> None:
        """Forgets what lies at or below a position."""
        gone = bisect_right(self.entries, through, key=_position)
        if gone:
            del self.entries[:gone], self._weights[:gone]
            self.base += gone
        self.since = max(self.since, through)

    def invalidate(self, through: GlobalSeq) -> None:
        """Forgets everything, and that some of it was never here: every reader has been overtaken."""
        self.base += len(self.entries) + 1
        self.entries.clear()
        self._weights = [0]
        self.since = through

    def wake(self) -> None:
        waiting, self.waiting = self.waiting, set()
        for future in waiting:
            if not future.done():
                future.set_result(None)
        if self.listeners and not self._is_telling:
            self._is_telling = True
            self._loop.call_soon(self._tell)  # whoever appended is answered first

    def _tell(self) -> None:
        """Calls those who listen: for a thousand of them a future and a task each would cost more than their work."""
        self._is_telling = False
        for listener in tuple(self.listeners):
            listener()


class Tail:
    """A ring over the whole journal, bounded in entries and bytes, dealt out to views.

    `head` is the last position it has seen, in `epoch`. Nothing a reader does, or fails to do, reaches back to `push`.
    """

    def __init__(self, head: GlobalSeq, entries: int = ENTRIES, limit: int = BYTES, *, epoch: Epoch = NO_EPOCH) -> None:
        self.head = head
        self.epoch = epoch
        self.has_readers = asyncio.Event()
        self.interrupt: Callable[[], object] = lambda: None
        self.capacity = entries
        self._limit = limit
        self._sizes: deque[int] = deque()
        self._bytes = 0
        self._dropped_entries = self._dropped_bytes = 0
        self._views: dict[RunId | Pattern | None, TailView] = {}
        self._trie: Trie[TailView] = Trie()

    @property
    def run_ids(self) -> list[RunId]:
        """The runs that somebody reads."""
        return [RunId(selection) for selection in self._views if isinstance(selection, str)]

    def join(self, selection: RunId | Pattern | None) -> TailView:
        """The view of a run, of a pattern or of everything; every join is followed by a leave."""
        view = self._views.get(selection)
        if view is None:
            view = self._views[selection] = TailView(self.head)
            if isinstance(selection, Pattern):
                self._trie.add(selection, view)
            self.has_readers.set()
        view.readers += 1
        return view

    def leave(self, selection: RunId | Pattern | None, view: TailView) -> None:
        view.readers -= 1
        if view.readers:
            return
        del self._views[selection]
        if isinstance(selection, Pattern):
            self._trie.discard(selection, view)
        if not self._views:
            self.has_readers.clear()
            self.interrupt()

    def push(self, entries: Sequence[Entry]) -> bool:
        """Takes what follows its head; False when something is missing in between.

        What lies elsewhere is passed over: a request that was in already gives back its first positions.
        """
        following: list[Entry] = []
        for entry in entries:
            if entry.global_seq == self.head + len(following) + 1:
                following.append(entry)
        reached = GlobalSeq(self.head + len(following))
        is_all = all(entry.global_seq <= reached for entry in entries)
        woken = {view for entry in following for view in self._deal(entry)}
        self.head = reached
        self._bound()
        for view in woken:
            view.wake()
        return is_all

    def skip(self, head: GlobalSeq) -> None:
        """Gives up on what lies between: the readers find it in the journal."""
        self.head = head
        self._sizes.clear()
        self._bytes = 0
        for view in self._views.values():
            view.invalidate(head)
            view.wake()

    def observe_epoch(self, epoch: Epoch, head: GlobalSeq) -> bool:
        """Whether an epoch is its own; a later one is begun at its head, and nothing is left of the one before."""
        if epoch > self.epoch:
            self.epoch = epoch
            for view in self._views.values():
                view.opened_seq, view.closed_seq = Seq(0), None
            self.skip(head)
            self.interrupt()
        return epoch == self.epoch

    def close(self) -> None:
        """Ends what still waits: the journal is closed, and nothing will come any more."""
        for view in self._views.values():
            view.is_journal_closed = True
            view.wake()

    def update_heads(self, heads: Mapping[RunId, Head]) -> None:
        """Where runs stand now, so that the readers of a closed one can end; news of an earlier life come too late."""
        for run_id, head in heads.items():
            view = self._views.get(run_id)
            if view is None or head.opened_seq < view.opened_seq:
                continue
            if not (view.entries and view.entries[-1].seq > head.last_seq):
                view.opened_seq, view.closed_seq = head.opened_seq, head.closed_seq
                if not head.is_open:
                    view.wake()

    def _deal(self, entry: Entry) -> list[TailView]:
        size = entry.weight
        held = size * HELD
        self._sizes.append(held)
        self._bytes += held
        views = self._trie.match(entry.subject) if self._trie else []
        own = self._views.get(entry.run_id)
        views += [view for view in (self._views.get(None), own) if view is not None]
        for view in views:
            view.add(entry, size)
        if own is not None and entry.type == FORK and entry.kind == RUN:
            own.invalidate(entry.global_seq)  # what the child inherits comes first, and only the journal has it
        return views

    def _bound(self) -> None:
        """Keeps to its bounds; views are swept a fraction of the ring at a time, because that is cheaper."""
        while len(self._sizes) > self.capacity or (self._bytes > self._limit and len(self._sizes) > 1):
            size = self._sizes.popleft()
            self._bytes -= size
            self._dropped_entries += 1
            self._dropped_bytes += size
        if self._dropped_entries > self.capacity // SWEEP or self._dropped_bytes > self._limit // SWEEP:
            self._dropped_entries = self._dropped_bytes = 0
            for view in self._views.values():
                view.drop(GlobalSeq(self.head - len(self._sizes)))

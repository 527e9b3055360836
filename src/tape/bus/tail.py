"""The shared tail: the newest entries of the journal, held once for the whole process.

A reader holds nothing but its position in a view. A view is what one selection sees of the tail. All readers of that
selection share it, so an entry is matched once and wakes only the readers that want it.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Final, TypeAlias

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
BATCH_BYTES: Final = 32 * 1024  # about what a socket accepts at once
MEMORY_FACTOR: Final = 4  # an entry in memory, with the two frames cached on it, against its weight

ViewKey: TypeAlias = RunId | Pattern | None  # a run, a pattern of subjects, or the whole journal

_position = attrgetter("global_seq")


class TailView:
    """All entries of one selection after `since` that the tail still holds, numbered from `base` on."""

    __slots__ = (
        "_is_call_scheduled", "_loop", "_weights", "base", "closed_seq", "entries", "is_journal_closed", "listeners",
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
        self._is_call_scheduled = False
        # Before Python 3.12 get_running_loop is a system call, which costs more than the rest of a wait.
        self._loop = asyncio.get_running_loop()

    def after(self, position: GlobalSeq | None) -> int:
        """The number of the first entry after a position; -1 when the view does not reach back to it."""
        if position is None or position < self.since:
            return -1
        return self.base + bisect_right(self.entries, position, key=_position)

    def lag(self, number: int) -> tuple[int, int]:
        """How far an entry's number is behind the end, in entries and bytes."""
        first = max(number - self.base, 0)
        return len(self.entries) - first, self._weights[-1] - self._weights[first]

    def batch(self, number: int, limit: int, max_bytes: int) -> Sequence[Entry]:
        """Entries from a number on within both limits, but at least one if there is one."""
        first = number - self.base
        if not 0 <= first < len(self.entries):
            return ()
        last = min(first + limit, len(self.entries))
        end = bisect_right(self._weights, self._weights[first] + max_bytes, first + 1, last)
        return self.entries[first:end]

    def wait(self) -> asyncio.Future[None]:
        """A future that is done when there may be more to read, or an end."""
        if self.is_journal_closed:
            raise Unavailable("the journal was closed")
        future = self._loop.create_future()
        self.waiting.add(future)
        return future

    def forget(self, waiter: asyncio.Future[None] | None) -> None:
        """Drops a future that nobody awaits any more."""
        if waiter is not None:
            self.waiting.discard(waiter)

    def add(self, entry: Entry, size: int) -> None:
        self.entries.append(entry)
        self._weights.append(self._weights[-1] + size)
        if self.closed_seq is not None and entry.seq > self.closed_seq:
            self.closed_seq = None  # the run has been opened again

    def drop(self, through: GlobalSeq) -> None:
        """Removes the entries up to a position."""
        gone = bisect_right(self.entries, through, key=_position)
        if gone:
            del self.entries[:gone], self._weights[:gone]
            self.base += gone
        self.since = max(self.since, through)

    def invalidate(self, through: GlobalSeq) -> None:
        """Removes all entries and skips a number, so that every reader is overtaken and reads history again."""
        self.base += len(self.entries) + 1
        self.entries.clear()
        self._weights = [0]
        self.since = through

    def wake(self) -> None:
        """Wakes the waiting readers now; calls the listeners after the appender has been answered."""
        waiting, self.waiting = self.waiting, set()
        for future in waiting:
            if not future.done():
                future.set_result(None)
        if self.listeners and not self._is_call_scheduled:
            self._is_call_scheduled = True
            self._loop.call_soon(self._call_listeners)

    def _call_listeners(self) -> None:
        """A callback, because a future and a task for each of a thousand readers cost more than their work."""
        self._is_call_scheduled = False
        for listener in tuple(self.listeners):
            listener()


class Tail:
    """A ring over the whole journal, bounded in entries and bytes, that dispatches each entry to its views.

    `head` is the last position it has seen, in `epoch`. No reader can delay or fail `push`.
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
        self._views: dict[ViewKey, TailView] = {}
        self._trie: Trie[TailView] = Trie()

    @property
    def run_ids(self) -> list[RunId]:
        """The runs that have readers."""
        return [RunId(key) for key in self._views if isinstance(key, str)]

    def join(self, key: ViewKey) -> TailView:
        """The view of a key; every join must be followed by a leave."""
        view = self._views.get(key)
        if view is None:
            view = self._views[key] = TailView(self.head)
            if isinstance(key, Pattern):
                self._trie.add(key, view)
            self.has_readers.set()
        view.readers += 1
        return view

    def leave(self, key: ViewKey, view: TailView) -> None:
        view.readers -= 1
        if view.readers:
            return
        del self._views[key]
        if isinstance(key, Pattern):
            self._trie.discard(key, view)
        if not self._views:
            self.has_readers.clear()
            self.interrupt()

    def push(self, entries: Sequence[Entry]) -> bool:
        """Adds the entries that follow the head; False when a position between is missing.

        Other entries are ignored: a repeated request with the same key returns its first positions.
        """
        following: list[Entry] = []
        for entry in entries:
            if entry.global_seq == self.head + len(following) + 1:
                following.append(entry)
        reached = GlobalSeq(self.head + len(following))
        is_complete = all(entry.global_seq <= reached for entry in entries)
        woken = {view for entry in following for view in self._dispatch(entry)}
        self.head = reached
        self._bound()
        for view in woken:
            view.wake()
        return is_complete

    def skip(self, head: GlobalSeq) -> None:
        """Jumps to a head; the readers find the entries between in the journal."""
        self.head = head
        self._sizes.clear()
        self._bytes = 0
        for view in self._views.values():
            view.invalidate(head)
            view.wake()

    def observe_epoch(self, epoch: Epoch, head: GlobalSeq) -> bool:
        """Whether an epoch is the tail's own; a later epoch replaces everything and begins at its head."""
        if epoch > self.epoch:
            self.epoch = epoch
            for view in self._views.values():
                view.opened_seq, view.closed_seq = Seq(0), None
            self.skip(head)
            self.interrupt()
        return epoch == self.epoch

    def close(self) -> None:
        """Wakes all readers; no entry follows, because the journal is closed."""
        for view in self._views.values():
            view.is_journal_closed = True
            view.wake()

    def update_heads(self, heads: Mapping[RunId, Head]) -> None:
        """Records which runs are closed, so that their streams end; ignores the head of an earlier incarnation."""
        for run_id, head in heads.items():
            view = self._views.get(run_id)
            if view is None or head.opened_seq < view.opened_seq:
                continue
            if not (view.entries and view.entries[-1].seq > head.last_seq):
                view.opened_seq, view.closed_seq = head.opened_seq, head.closed_seq
                if not head.is_open:
                    view.wake()

    def _dispatch(self, entry: Entry) -> list[TailView]:
        size = entry.weight
        self._sizes.append(size * MEMORY_FACTOR)
        self._bytes += size * MEMORY_FACTOR
        views = self._trie.match(entry.subject) if self._trie else []
        own = self._views.get(entry.run_id)
        views += [view for view in (self._views.get(None), own) if view is not None]
        for view in views:
            view.add(entry, size)
        if own is not None and entry.type == FORK and entry.kind == RUN:
            own.invalidate(entry.global_seq)  # inherited entries come first, and only the journal has them
        return views

    def _bound(self) -> None:
        """Drops the oldest entries beyond the bounds; views are swept after a fraction of the ring, to save work."""
        while len(self._sizes) > self.capacity or (self._bytes > self._limit and len(self._sizes) > 1):
            size = self._sizes.popleft()
            self._bytes -= size
            self._dropped_entries += 1
            self._dropped_bytes += size
        if self._dropped_entries > self.capacity // SWEEP or self._dropped_bytes > self._limit // SWEEP:
            self._dropped_entries = self._dropped_bytes = 0
            for view in self._views.values():
                view.drop(GlobalSeq(self.head - len(self._sizes)))

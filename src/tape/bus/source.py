"""The journal for one who reads all of it: what this node's tail has, and history where that does not reach back."""

from typing import Final

from tape.bus.tail import Tail, TailView
from tape.core.ids import GlobalSeq
from tape.core.ports import Bounds, Page, Reader
from tape.core.subject import Pattern

PAGE: Final = 512


class Source:
    """Pages of the journal, or of the subjects of a pattern; what this node appends is not read again."""

    def __init__(self, history: Reader, tail: Tail) -> None:
        self._history = history
        self._tail = tail
        self._selection: Pattern | None = None
        self._lane: TailView | None = None

    async def read(self, after: GlobalSeq, *, pattern: Pattern | None = None) -> Page:
        view = self._joined(pattern)
        first = view.after(after) - view.base
        if first < 0:
            return await self._history.read(after, pattern=pattern)
        found = view.entries[first : first + PAGE]
        is_all = first + len(found) == len(view.entries)
        scanned_to = max(after, self._tail.head) if is_all else found[-1].global_seq
        return Page(found, GlobalSeq(scanned_to), Bounds(GlobalSeq(1), self._tail.head), None, self._tail.epoch)

    async def wait(self, beyond: GlobalSeq) -> None:
        """Until what was read last may go on beyond a position."""
        view = self._joined(self._selection)
        if view.after(beyond) - view.base == len(view.entries):
            waiter = view.wait()
            try:
                await waiter
            finally:
                view.forget(waiter)

    def close(self) -> None:
        if self._lane is not None:
            self._tail.leave(self._selection, self._lane)
            self._lane = None

    def _joined(self, pattern: Pattern | None) -> TailView:
        if self._lane is None or pattern != self._selection:
            self.close()
            self._selection, self._lane = pattern, self._tail.join(pattern)
        return self._lane

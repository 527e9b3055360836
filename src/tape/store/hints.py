"""Hints that the journal has grown: anybody may send one, so it only says when to read, not what is there."""

import asyncio
import sys
from typing import Final

from tape.core.ids import GlobalSeq

UNKNOWN: Final = GlobalSeq(sys.maxsize)  # the head is not known, so every waiter reads
MOST_DIGITS: Final = len(str(sys.maxsize))


class Hints:
    """The hints since the last wait returned. A hint wakes one waiter once, even if it is false."""

    def __init__(self) -> None:
        self._arrived = asyncio.Event()
        self._head = GlobalSeq(0)

    async def wait_beyond(self, cursor: GlobalSeq) -> None:
        """Returns when a hint names a head beyond a position."""
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            if self._head > cursor:
                return

    def add(self, head: GlobalSeq) -> None:
        """Wakes the waiter; of several hints before that, the highest head counts."""
        self._head = max(self._head, head) if self._arrived.is_set() else head
        self._arrived.set()


def head_of(text: str) -> GlobalSeq:
    """The head that a hint names; UNKNOWN if it is no number."""
    return GlobalSeq(int(text)) if text.isdecimal() and len(text) <= MOST_DIGITS else UNKNOWN

"""Hints that the journal has grown: anybody may give them, so they say when to look and nothing of what is there."""

import asyncio
import sys
from typing import Final

from tape.core.ids import GlobalSeq

UNKNOWN: Final = GlobalSeq(sys.maxsize)  # what has changed is not known, so everybody looks
MOST_DIGITS: Final = len(str(sys.maxsize))


class Hints:
    """What was heard since somebody looked last. A hint is spent by whom it wakes, however false it is."""

    def __init__(self) -> None:
        self._heard = asyncio.Event()
        self._head = GlobalSeq(0)

    async def wait_beyond(self, cursor: GlobalSeq) -> None:
        """Returns when a hint names a head beyond a position."""
        while True:
            await self._heard.wait()
            self._heard.clear()
            if self._head > cursor:
                return

    def take(self, head: GlobalSeq) -> None:
        """Wakes who waits; a later hint takes nothing back of one that is not yet spent."""
        self._head = max(self._head, head) if self._heard.is_set() else head
        self._heard.set()


def head_of(text: str) -> GlobalSeq:
    """The head that a hint names."""
    return GlobalSeq(int(text)) if text.isdecimal() and len(text) <= MOST_DIGITS else UNKNOWN

"""Feeding the tail with what others have written, for as long as anybody reads."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Final, NoReturn

import anyio

from tape.bus.tail import Tail
from tape.core.event import Entry
from tape.core.ids import Epoch, GlobalSeq
from tape.core.ports import Page, Store

RETRY_S: Final = 0.5


class Feed:
    """Keeps the tail at the journal's head. What this process appends is given to it by the appender."""

    def __init__(self, store: Store, tail: Tail) -> None:
        self._store = store
        self._tail = tail
        self._pause = anyio.CancelScope()
        self._is_hurried = False
        self._known_changes: tuple[Epoch, int | None] = (tail.epoch, None)
        tail.interrupt = lambda: self._pause.cancel()

    def take(self, entries: Sequence[Entry]) -> None:
        """What this process has appended; when others wrote in between, their entries are fetched at once.

        So is everything where an entry is of another epoch: the tail has yet to begin that one, or its place is lost.
        """
        if any(entry.epoch != self._tail.epoch for entry in entries) or not self._tail.push(entries):
            self._is_hurried = True
            self._pause.cancel()

    async def run(self) -> NoReturn:
        try:
            while True:
                await self._tail.has_readers.wait()
                try:
                    await self._round()
                except Exception:  # noqa: BLE001 - whatever it is, the readers meet it in their own reads
                    await self._give_up()
        finally:
            self._tail.close()

    async def _give_up(self) -> None:
        """Sends the readers to the journal, and tries again a little later."""
        with suppress(Exception):
            self._tail.skip((await self._store.journal.bounds()).head)
        await anyio.sleep(RETRY_S)

    async def _round(self) -> None:
        """Reads a page on; when that was all, notes which runs have ended, and waits for more."""
        self._is_hurried = False
        known = self._tail.head
        page = await self._store.journal.read(known)
        if self._tail.observe_epoch(page.epoch, page.bounds.head):
            self._take_page(known, page)
        if page.epoch != self._tail.epoch or self._tail.head < page.bounds.head:
            return
        await self._update_heads(page)
        if not self._is_hurried and self._tail.has_readers.is_set():
            with anyio.CancelScope() as self._pause:
                await self._store.journal.wait(self._tail.head)

    def _take_page(self, known: GlobalSeq, page: Page) -> None:
        """Goes on, or starts again at the head, which sends the readers to the journal.

        It does that when it is far behind, when a position is missing, and before a head that has gone back because an
        older copy of the journal was restored.
        """
        is_near = page.bounds.head - self._tail.head <= self._tail.capacity
        is_whole = page.bounds.floor <= self._tail.head + 1 and page.bounds.head >= known
        is_taken = is_near and is_whole and self._tail.push(page.entries)
        if not is_taken or self._tail.head == known < page.bounds.head:
            self._tail.skip(page.bounds.head)

    async def _update_heads(self, page: Page) -> None:
        if page.changes is not None and self._known_changes == (page.epoch, page.changes):
            return
        if run_ids := self._tail.run_ids:
            self._tail.update_heads(await self._store.runs.heads(run_ids))
        self._known_changes = page.epoch, page.changes

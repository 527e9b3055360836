"""Feeds the tail with the entries of other processes while it has readers."""

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
    """Keeps the tail at the journal's head; the appender gives it the entries of this process."""

    def __init__(self, store: Store, tail: Tail) -> None:
        self._store = store
        self._tail = tail
        self._waiting = anyio.CancelScope()
        self._must_read = False
        self._known_changes: tuple[Epoch, int | None] = (tail.epoch, None)
        tail.interrupt = lambda: self._waiting.cancel()

    def on_appended(self, entries: Sequence[Entry]) -> None:
        """Pushes entries that this process appended.

        Reads the journal at once if other processes wrote in between, or if an entry is of another epoch: then the tail
        has not begun that epoch yet, or the entry is of an earlier one.
        """
        if any(entry.epoch != self._tail.epoch for entry in entries) or not self._tail.push(entries):
            self._must_read = True
            self._waiting.cancel()

    async def run(self) -> NoReturn:
        try:
            while True:
                await self._tail.has_readers.wait()
                try:
                    await self._read_and_wait()
                except Exception:  # noqa: BLE001 - whatever it is, the readers get it from their own reads
                    await self._skip_to_head()
        finally:
            self._tail.close()

    async def _skip_to_head(self) -> None:
        """Sends the readers to the journal, and retries a little later."""
        with suppress(Exception):
            self._tail.skip((await self._store.journal.bounds()).head)
        await anyio.sleep(RETRY_S)

    async def _read_and_wait(self) -> None:
        """Reads a page; at the head, updates which runs are closed and waits for more."""
        self._must_read = False
        known = self._tail.head
        page = await self._store.journal.read(known)
        if self._tail.observe_epoch(page.epoch, page.bounds.head):
            self._push(known, page)
        if page.epoch != self._tail.epoch or self._tail.head < page.bounds.head:
            return
        await self._update_heads(page)
        if not self._must_read and self._tail.has_readers.is_set():
            with anyio.CancelScope() as self._waiting:
                await self._store.journal.wait(self._tail.head)

    def _push(self, known: GlobalSeq, page: Page) -> None:
        """Pushes a page, or skips to the head, which sends the readers to the journal.

        It skips when it is far behind, when a position is missing, and when the head has gone back because an older
        copy of the journal was restored.
        """
        is_near = page.bounds.head - self._tail.head <= self._tail.capacity
        is_complete = page.bounds.floor <= self._tail.head + 1 and page.bounds.head >= known
        is_pushed = is_near and is_complete and self._tail.push(page.entries)
        if not is_pushed or self._tail.head == known < page.bounds.head:
            self._tail.skip(page.bounds.head)

    async def _update_heads(self, page: Page) -> None:
        if page.changes is not None and self._known_changes == (page.epoch, page.changes):
            return
        if run_ids := self._tail.run_ids:
            self._tail.update_heads(await self._store.runs.heads(run_ids))
        self._known_changes = page.epoch, page.changes

"""Feeding the tail with what others have written, for as long as anybody reads."""

from collections.abc import Sequence
from typing import Final, NoReturn

import anyio

from tape.bus.tail import Tail
from tape.core.errors import Corrupt, Unavailable
from tape.core.event import Entry
from tape.core.ports import Store

RETRY_S: Final = 0.5


class Feed:
    """Keeps the tail at the journal's head. What this process appends is pushed by the appender itself."""

    def __init__(self, store: Store, tail: Tail) -> None:
        self._store = store
        self._tail = tail
        self._pause = anyio.CancelScope()
        self._is_hurried = False

    def take(self, entries: Sequence[Entry]) -> None:
        """What this process has appended; when others wrote in between, their entries are fetched at once."""
        if not self._tail.push(entries):
            self._is_hurried = True
            self._pause.cancel()

    async def run(self) -> NoReturn:
        while True:
            await self._tail.is_wanted.wait()
            try:
                await self._round()
            except Unavailable:
                await anyio.sleep(RETRY_S)  # readers who need the journal are told by their own reads
            except Corrupt:
                self._tail.skip((await self._store.journal.bounds()).head)

    async def _round(self) -> None:
        self._is_hurried = False
        if await self._catch_up():
            await self._note_ends()
            if not self._is_hurried:
                with anyio.CancelScope() as self._pause:
                    await self._store.journal.wait(self._tail.head)

    async def _catch_up(self) -> bool:
        """Reads a page on; whether that was all. Far behind, it starts again at the head."""
        page = await self._store.journal.read(self._tail.head)
        behind = page.bounds.head - self._tail.head
        if behind > self._tail.capacity or page.bounds.floor > self._tail.head + 1:
            self._tail.skip(page.bounds.head)
            return True
        self._tail.push(page.entries)
        return self._tail.head >= page.bounds.head

    async def _note_ends(self) -> None:
        if run_ids := self._tail.run_ids:
            self._tail.note(await self._store.runs.heads(run_ids))

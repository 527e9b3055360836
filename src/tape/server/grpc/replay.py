"""Sends history to one reader, a page at a time; cached blocks of the whole journal are not read again."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Protocol, TypeAlias

from tape.bus.stream import StreamReader
from tape.core.event import Entry
from tape.core.ids import Epoch
from tape.core.ports import Store
from tape.server.grpc.batches import BLOCK, Batches, in_blocks

AT_ONCE: Final = 32  # blocks sent after one look at where the journal begins and ends

Deliver: TypeAlias = Callable[[Sequence[Entry]], Awaitable[None]]
Write: TypeAlias = Callable[[Sequence[bytes], int], Awaitable[None]]


class Replay(Protocol):
    """The history of one reader."""

    async def send_page(self) -> bool:
        """Sends the next page; whether that was the end."""
        ...


class Pages:
    """The entries of a reader, at most so many in a delivery."""

    def __init__(self, reader: StreamReader, deliver: Deliver, most: int) -> None:
        self._reader = reader
        self._deliver = deliver
        self._most = most

    async def send_page(self) -> bool:
        page = await self._reader.replay()
        for first in range(0, len(page.entries), self._most):
            await self._deliver(page.entries[first : first + self._most])
        return page.is_over


class Blocks:
    """The whole journal; `write` takes messages and the number of their entries."""

    def __init__(self, reader: StreamReader, store: Store, batches: Batches, write: Write) -> None:
        self._reader = reader
        self._store = store
        self._batches = batches
        self._write = write

    async def send_page(self) -> bool:
        if await self._send_cached():
            return False
        page = await self._reader.replay()
        entries = page.entries if page.is_over or page.scanned_to is not None else self._whole_blocks(page.entries)
        for some in in_blocks(entries):
            await self._write(self._batches.messages(some), len(some))
        return page.is_over

    async def _send_cached(self) -> bool:
        """Sends the cached blocks that the journal still has; whether there were any."""
        first = self._reader.cursor
        if self._batches.block(self._store.epoch, first) is None:
            return False
        bounds = await self._store.journal.bounds()
        epoch = self._store.epoch
        if not self._reader.selection.observe_epoch(epoch, bounds.head):
            return False  # reading the next page decides whether the cursor is valid in that epoch
        until = self._reader.selection.until
        end = bounds.head if until is None else min(until, bounds.head)
        is_there = first + 1 >= bounds.floor
        return is_there and await self._send_blocks(epoch, range(first, end - BLOCK + 1, BLOCK)[:AT_ONCE])

    async def _send_blocks(self, epoch: Epoch, places: Sequence[int]) -> bool:
        for number, after in enumerate(places):
            messages = self._batches.block(epoch, after)
            if messages is None:
                return number > 0
            await self._write(messages, BLOCK)
            self._reader.seek(after + BLOCK)
        return len(places) > 0

    def _whole_blocks(self, entries: Sequence[Entry]) -> Sequence[Entry]:
        """The entries up to the end of a block, so that the next page begins with one."""
        rest = entries[-1].global_seq % BLOCK if entries else 0
        if not 0 < rest < len(entries):
            return entries
        self._reader.seek(entries[-1].global_seq - rest)
        return entries[:-rest]

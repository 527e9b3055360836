"""History told to one reader, a page at a time; what is kept of the whole journal as messages is not read again."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Protocol, TypeAlias

from tape.bus.stream import StreamReader
from tape.core.event import Entry
from tape.core.ids import Epoch
from tape.core.ports import Store
from tape.server.grpc.batches import BLOCK, Batches, in_blocks

AT_ONCE: Final = 32  # blocks told after one look at where the journal begins and ends

Deliver: TypeAlias = Callable[[Sequence[Entry]], Awaitable[None]]
Write: TypeAlias = Callable[[Sequence[bytes], int], Awaitable[None]]


class Replay(Protocol):
    """What is told of history."""

    async def tell(self) -> bool:
        """Tells the next page; whether that was the end."""
        ...


class Pages:
    """The entries of a reader, so many in a delivery at most."""

    def __init__(self, reader: StreamReader, deliver: Deliver, most: int) -> None:
        self._reader = reader
        self._deliver = deliver
        self._most = most

    async def tell(self) -> bool:
        page = await self._reader.replay()
        for first in range(0, len(page.entries), self._most):
            await self._deliver(page.entries[first : first + self._most])
        return page.is_over


class Blocks:
    """The whole journal; `write` takes messages, and how many entries they are."""

    def __init__(self, reader: StreamReader, store: Store, batches: Batches, write: Write) -> None:
        self._reader = reader
        self._store = store
        self._batches = batches
        self._write = write

    async def tell(self) -> bool:
        if await self._tell_kept():
            return False
        page = await self._reader.replay()
        entries = page.entries if page.is_over or page.scanned_to is not None else self._whole(page.entries)
        for some in in_blocks(entries):
            await self._write(self._batches.messages(some), len(some))
        return page.is_over

    async def _tell_kept(self) -> bool:
        """Tells the blocks that are kept and that the journal still has; whether there were any."""
        first = self._reader.cursor
        if self._batches.block(self._store.epoch, first) is None:
            return False
        bounds = await self._store.journal.bounds()
        epoch = self._store.epoch
        if not self._reader.selection.observe_epoch(
            epoch, bounds.head
        ):  # the next page tells whether it may go on there
            return False
        until = self._reader.selection.until
        end = bounds.head if until is None else min(until, bounds.head)
        is_there = first + 1 >= bounds.floor
        return is_there and await self._tell_blocks(epoch, range(first, end - BLOCK + 1, BLOCK)[:AT_ONCE])

    async def _tell_blocks(self, epoch: Epoch, places: Sequence[int]) -> bool:
        for number, after in enumerate(places):
            messages = self._batches.block(epoch, after)
            if messages is None:
                return number > 0
            await self._write(messages, BLOCK)
            self._reader.seek(after + BLOCK)
        return len(places) > 0

    def _whole(self, entries: Sequence[Entry]) -> Sequence[Entry]:
        """What ends with a block, so that the next page begins with one."""
        rest = entries[-1].global_seq % BLOCK if entries else 0
        if not 0 < rest < len(entries):
            return entries
        self._reader.seek(entries[-1].global_seq - rest)
        return entries[:-rest]

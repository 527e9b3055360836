"""Two ways to wait for a shared list to grow: the least there can be, and the one of seed 000."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Generic, TypeVar

T = TypeVar("T")


class Buffer(Generic[T]):
    """A list and a future for each reader that waits: no bounds, no gaps, no selection, no end."""

    def __init__(self) -> None:
        self._items: list[T] = []
        self.waiting: list[asyncio.Future[None]] = []

    def push(self, item: T) -> None:
        self._items.append(item)
        waiting, self.waiting = self.waiting, []
        for future in waiting:
            future.set_result(None)

    async def read(self, count: int) -> None:
        loop = asyncio.get_running_loop()
        place = 0
        while place < count:
            if place == len(self._items):
                future = loop.create_future()
                self.waiting.append(future)
                await future
            for _ in self._items[place:]:
                place += 1


class WaiterList(Generic[T]):
    """As seed 000 has it: a new event for every wait, in a list from which each takes itself out again."""

    def __init__(self) -> None:
        self._items: list[T] = []
        self.waiting: list[asyncio.Event] = []

    def push(self, item: T) -> None:
        self._items.append(item)
        for waiter in self.waiting:
            waiter.set()

    async def read(self, count: int) -> None:
        async with aclosing(self._stream()) as items:
            async for _ in items:
                count -= 1
                if not count:
                    return

    async def _stream(self) -> AsyncGenerator[T, None]:
        place = 0
        while True:
            while place < len(self._items):
                yield self._items[place]
                place += 1
            waiter = asyncio.Event()
            self.waiting.append(waiter)
            try:
                await waiter.wait()
            finally:
                self.waiting = [other for other in self.waiting if other is not waiter]

"""What the sides of `tasks` count, and how much of it: the same for all of them."""

import asyncio
from collections.abc import Awaitable, Callable
from statistics import quantiles
from time import perf_counter
from typing import TypeAlias

Handle: TypeAlias = Callable[[], Awaitable[None]]

TASKS = 10_000
BATCH = 1_000
FIRST = 200  # tasks that every side handles before it is measured, so that its connections and statements are there
SINGLES = 120
PAUSE_S = 0.03
WARM = 20
TEXT = b'{"number": 1, "status": "confirmed"}'


class Count:
    """Says when so many were handled."""

    def __init__(self, wanted: int) -> None:
        self._left = wanted
        self.is_done = asyncio.Event()

    async def one(self) -> None:
        self._left -= 1
        if not self._left:
            self.is_done.set()


class Waits:
    """How long each of some single things took from before it was published until it was handled."""

    def __init__(self) -> None:
        self.found: list[float] = []
        self._began = 0.0
        self._has_ended = asyncio.Event()

    async def end(self) -> None:
        self.found.append(perf_counter() - self._began)
        self._has_ended.set()

    async def all(self, say: Callable[[], Awaitable[object]]) -> None:
        for _ in range(WARM + SINGLES):
            await asyncio.sleep(PAUSE_S)
            self._has_ended.clear()
            self._began = perf_counter()
            await say()
            await self._has_ended.wait()
        del self.found[:WARM]


def percentile(waits: list[float], percent: int) -> float:
    return quantiles(waits, n=100)[percent - 1] * 1000

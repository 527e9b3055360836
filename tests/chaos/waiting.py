"""Waiting for what other processes make true, on a machine that may have other things to do."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import anyio
import anyio.to_thread

BOUND_S = 60.0
SCHEDULED = Path("/proc/self/schedstat")  # of Linux: how long we ran, and how long we waited for a processor


async def until(condition: Callable[[], bool]) -> None:
    while not await anyio.to_thread.run_sync(condition):  # noqa: ASYNC110 - other processes make it true
        await anyio.sleep(0.1)


class Stopwatch:
    """Measures seconds, less the part for which other processes of the machine had the processors."""

    def __init__(self) -> None:
        self._began = anyio.current_time()
        self._ran, self._waited = scheduled()

    def seconds(self) -> float:
        ran, waited = scheduled()
        share = (ran - self._ran + 1) / (ran - self._ran + waited - self._waited + 1)
        return share * (anyio.current_time() - self._began)


def scheduled() -> tuple[int, int]:
    """The nanoseconds for which this process ran, and for which it was ready to run and did not."""
    ran, waited, *_ = SCHEDULED.read_text().split() if SCHEDULED.exists() else ("0", "0")
    return int(ran), int(waited)


class Remaining(NamedTuple):
    """Something that must come to its end: what is wrong if it does not, and how much of it is left."""

    what: str
    left: Callable[[], int]
    bound_s: float = BOUND_S

    async def is_stuck(self) -> bool:
        """Whether no more of it ends within the bound; how long all of it takes depends on the machine."""
        least, since = await anyio.to_thread.run_sync(self.left), Stopwatch()
        while least > 0:
            await anyio.sleep(0.1)
            now = await anyio.to_thread.run_sync(self.left)
            if now < least:
                least, since = now, Stopwatch()
            elif since.seconds() > self.bound_s:
                return True
        return False

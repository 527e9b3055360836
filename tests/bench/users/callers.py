"""Callers that publish for some seconds, each waiting for its answer before it publishes again."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from time import perf_counter
from typing import TypeAlias

Call: TypeAlias = Callable[[int], Awaitable[object]]
BlockingCall: TypeAlias = Callable[[int], object]

WARM = 0.2  # as a share of the measured time: connections are opened and statements prepared


@dataclass(frozen=True, slots=True)
class Load:
    """How many callers, how many events each publishes at a time, and for how long."""

    callers: int
    batch: int
    seconds: float

    @property
    def name(self) -> str:
        shape = "singly" if self.batch == 1 else f"batches of {self.batch}"
        return f"{shape}, {self.callers} caller{'' if self.callers == 1 else 's'}"


@dataclass(frozen=True, slots=True)
class Published:
    """Events a second, and how many were acknowledged with those that only warmed up."""

    rate: float
    acknowledged: int


async def publish(load: Load, call: Call) -> Published:
    """Runs all callers as tasks of one event loop."""
    first, _ = await _calls(load.callers, call, WARM * load.seconds)
    calls, took = await _calls(load.callers, call, load.seconds)
    return Published(calls * load.batch / took, (first + calls) * load.batch)


async def _calls(callers: int, call: Call, seconds: float) -> tuple[int, float]:
    done, began = 0, perf_counter()

    async def repeat(number: int) -> None:
        nonlocal done
        while True:
            await call(number)
            done += 1
            if perf_counter() - began >= seconds:
                return

    async with asyncio.TaskGroup() as tasks:
        for number in range(callers):
            tasks.create_task(repeat(number))
    return done, perf_counter() - began


def publish_blocking(load: Load, call: BlockingCall, warm: float = WARM) -> Published:
    """Runs each caller in a thread of its own."""
    with ThreadPoolExecutor(load.callers) as threads:
        first, _ = _blocking_calls(threads, load.callers, call, warm * load.seconds) if warm else (0, 0.0)
        calls, took = _blocking_calls(threads, load.callers, call, load.seconds)
    return Published(calls * load.batch / took, (first + calls) * load.batch)


def _blocking_calls(threads: ThreadPoolExecutor, callers: int, call: BlockingCall, seconds: float) -> tuple[int, float]:
    began = perf_counter()

    def repeat(number: int) -> int:
        done = 0
        while True:
            call(number)
            done += 1
            if perf_counter() - began >= seconds:
                return done

    done = sum(threads.map(repeat, range(callers)))
    return done, perf_counter() - began

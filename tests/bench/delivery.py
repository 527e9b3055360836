"""From a publisher to a subscriber at a steady rate: the journal on Postgres against XADD and XREAD on Redis.

An entry is late by what has passed since the moment it was due, not since it was sent; sixteen may be on their way.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from statistics import quantiles
from subprocess import PIPE
from time import monotonic_ns
from typing import TypeAlias

import asyncpg
import redis.asyncio

from tape.compose import open_journal
from tape.core.event import Event
from tests.bench.bare import Publisher
from tests.bench.compare import Comparison, Goal, Side
from tests.bench.loop import run
from tests.bench.reader import RUN, delays
from tests.bench.servers import journal_url, valkey
from tests.bench.xread import STREAM, xread_delays

AREA = "postgres"
RATE = 1_000
HIGH_RATE = 5_000
SECONDS = 2
IN_FLIGHT = 16
WARM_UP = 100

Send: TypeAlias = Callable[[int], Awaitable[object]]


class Delays:
    """One measurement a turn, from which both percentiles are taken."""

    def __init__(self, measure: Callable[[], list[int]]) -> None:
        self._measure = measure
        self._untold: dict[int, float] = {}

    def percentile(self, percent: int) -> float:
        if percent not in self._untold:
            cuts = quantiles(self._measure()[WARM_UP:], n=100)
            self._untold = {50: cuts[49] / 1e6, 99: cuts[98] / 1e6}
        return self._untold.pop(percent)


def comparisons() -> list[Comparison]:
    ours, theirs = Delays(lambda: run(_ours(RATE))), Delays(lambda: run(_theirs()))
    ours_apart, theirs_apart = Delays(lambda: run(_ours_apart())), Delays(lambda: run(_theirs_apart()))
    least, least_apart = Delays(lambda: run(_least())), Delays(lambda: run(_least_apart()))
    same, apart = partial(ours.percentile, 50), partial(ours_apart.percentile, 50)
    late_apart = partial(ours_apart.percentile, 99)
    return [
        _row("Redis, same process, p50", same, partial(theirs.percentile, 50), 1.7),
        _row("Redis, same process, p99", partial(ours.percentile, 99), partial(theirs.percentile, 99), 4),
        _row("Redis, another process, p50", apart, partial(theirs_apart.percentile, 50), 2.5),
        _row("Redis, another process, p99", late_apart, partial(theirs_apart.percentile, 99), 4),
        _row("a bare INSERT, same process, p50", same, partial(least.percentile, 50)),
        _row("a bare INSERT and SELECT, another process, p50", apart, partial(least_apart.percentile, 50)),
        Comparison(
            area=AREA, name="publish to subscriber, 5,000/s asked for and held", unit="events/s",
            ours=achieved, peer=lambda: HIGH_RATE, goal=Goal(">=", 0.98),
        ),
    ]  # fmt: skip


def _row(name: str, ours: Side, peer: Side, bound: float | None = None) -> Comparison:
    name = f"publish to subscriber at 1,000/s against {name}"
    goal = None if bound is None else Goal("<=", bound)
    return Comparison(area=AREA, name=name, unit="ms", ours=ours, peer=peer, goal=goal)


def achieved() -> float:
    """Entries a second that a subscriber was given when so many were published."""
    late = run(_ours(HIGH_RATE))
    return len(late) / (SECONDS + late[-1] / 1e9)


async def _ours(rate: int) -> list[int]:
    with journal_url() as url:
        async with open_journal(url) as journal, asyncio.TaskGroup() as tasks:
            await journal.open_run(RUN)
            reading = tasks.create_task(delays(journal, rate * SECONDS))
            await steadily(lambda due: journal.append(Event(run_id=RUN, payload=due)), rate)
            return await reading


async def _ours_apart() -> list[int]:
    with journal_url() as url:
        async with open_journal(url) as journal:
            await journal.append(Event(run_id=RUN, payload=monotonic_ns()), open=True)
            reader = await _started("tests.bench.reader", url)
            await steadily(lambda due: journal.append(Event(run_id=RUN, payload=due)), RATE)
            return await _said(reader)


async def _theirs() -> list[int]:
    async with redis.asyncio.from_url(valkey(None).url, max_connections=IN_FLIGHT + 4) as client:
        await client.delete(STREAM)
        async with asyncio.TaskGroup() as tasks:
            reading = tasks.create_task(xread_delays(client, RATE * SECONDS))
            await steadily(lambda due: client.xadd(STREAM, {"p": due}), RATE)
            return await reading


async def _theirs_apart() -> list[int]:
    async with redis.asyncio.from_url(valkey(None).url, max_connections=IN_FLIGHT + 4) as client:
        await client.delete(STREAM)
        await client.xadd(STREAM, {"p": monotonic_ns()})
        reader = await _started("tests.bench.xread", valkey(None).url)
        await steadily(lambda due: client.xadd(STREAM, {"p": due}), RATE)
        return await _said(reader)


async def _least() -> list[int]:
    with journal_url() as url:
        publisher = Publisher(await asyncpg.connect(url))
        await publisher.prepare()
        await steadily(publisher.send, RATE)
        return publisher.late


async def _least_apart() -> list[int]:
    with journal_url() as url:
        publisher = Publisher(await asyncpg.connect(url))
        await publisher.prepare()
        await publisher.send(monotonic_ns())
        reader = await _started("tests.bench.bare", url)
        await steadily(publisher.send, RATE)
        return await _said(reader)


async def steadily(send: Send, rate: int) -> None:
    """Sends what is due at its moment, or as soon after it as one of those in flight has arrived.

    A timer of the loop is as coarse as a millisecond, so what is left of that is passed by turning round.
    """
    start = monotonic_ns() + 50_000_000
    room = asyncio.Semaphore(IN_FLIGHT)
    async with asyncio.TaskGroup() as tasks:
        for number in range(rate * SECONDS):
            due = start + number * 1_000_000_000 // rate
            while (left := due - monotonic_ns()) > 0:  # noqa: ASYNC110 - nothing happens at that moment but this
                await asyncio.sleep(left / 1e9)
            await room.acquire()
            tasks.create_task(_sent(send, due)).add_done_callback(lambda _: room.release())


async def _sent(send: Send, due: int) -> None:
    await send(due)


async def _started(module: str, url: str) -> asyncio.subprocess.Process:
    program = [sys.executable, "-m", module, url, str(RATE * SECONDS + 1)]
    reader = await asyncio.create_subprocess_exec(*program, stdout=PIPE)
    assert reader.stdout is not None
    await reader.stdout.readline()
    return reader


async def _said(reader: asyncio.subprocess.Process) -> list[int]:
    said, _ = await reader.communicate()
    return [int(word) for word in said.split()][1:]  # the first one waited for the program to start

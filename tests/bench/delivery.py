"""From a publisher to a subscriber at a steady rate: the journal on Postgres against XADD and XREAD on Redis.

An entry is late by what has passed since the moment it was due, not since it was sent; sixteen may be on their way.
A publisher that keeps time by its loop is late itself, by up to a millisecond and differently whenever it begins, so it
begins many times; one to which events are brought has them sooner, and always as soon.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from functools import partial
from statistics import quantiles
from subprocess import PIPE
from time import monotonic_ns
from types import ModuleType
from typing import Any, TypeAlias

import asyncpg
import redis.asyncio

from tape.compose import open_journal
from tape.core.event import Event
from tests.bench import arrivals, bare, reader, xread
from tests.bench.compare import Comparison, Goal, Side
from tests.bench.loop import run
from tests.bench.servers import journal_url, valkey

AREA = "postgres"
RATE = 1_000
HIGH_RATE = 5_000
SECONDS = 2
BEGINNINGS = 25
AT_ONCE = 200
EVENTS = BEGINNINGS * AT_ONCE
IN_FLIGHT = 16
WARM_UP = 100

Send: TypeAlias = Callable[[int], Awaitable[object]]
Measured: TypeAlias = Coroutine[Any, Any, list[int]]
Pace: TypeAlias = Callable[[], AsyncIterator[int]]


class Delays:
    """One measurement a turn, from which both percentiles are taken."""

    def __init__(self, measure: Callable[[], Measured]) -> None:
        self._measure = measure
        self._untold: dict[int, float] = {}

    def at(self, percent: int) -> Side:
        return partial(self._percentile, percent)

    def _percentile(self, percent: int) -> float:
        if percent not in self._untold:
            cuts = quantiles(run(self._measure())[WARM_UP:], n=100)
            self._untold = {50: cuts[49] / 1e6, 99: cuts[98] / 1e6}
        return self._untold.pop(percent)


def comparisons() -> list[Comparison]:
    same, same_redis = Delays(partial(_ours, kept)), Delays(partial(_redis, kept))
    apart, apart_redis = Delays(partial(_ours_apart, kept)), Delays(partial(_redis_apart, kept))
    least = Delays(partial(_least_apart, kept))
    return [
        _row("Redis that keeps nothing on disk, same process, p50", same.at(50), same_redis.at(50), 1.7),
        _row("Redis that keeps nothing on disk, same process, p99", same.at(99), same_redis.at(99), 4),
        _row("Redis that keeps nothing on disk, another process, p50", apart.at(50), apart_redis.at(50), 2.5),
        _row("Redis that keeps nothing on disk, another process, p99", apart.at(99), apart_redis.at(99), 4),
        _row("a bare INSERT with NOTIFY and SELECT, another process, p50", apart.at(50), least.at(50), 1.6),
        _row("a bare INSERT with NOTIFY and SELECT, another process, p99", apart.at(99), least.at(99), 3),
        _brought("Redis that keeps nothing on disk, same process", _ours, _redis),
        _brought("Redis that keeps nothing on disk, another process", _ours_apart, _redis_apart),
        _brought("a bare INSERT, same process", _ours, _least),
        _brought("a bare INSERT and SELECT, another process", _ours_apart, _least_apart),
        Comparison(
            area=AREA, name="publish to subscriber, 5,000/s asked for and held", unit="events/s",
            ours=achieved, peer=lambda: HIGH_RATE, goal=Goal(">=", 0.98),
        ),
    ]  # fmt: skip


def _row(name: str, ours: Side, peer: Side, bound: float | None = None) -> Comparison:
    name = f"publish to subscriber at 1,000/s against {name}"
    goal = None if bound is None else Goal("<=", bound)
    return Comparison(area=AREA, name=name, unit="ms", ours=ours, peer=peer, goal=goal)


def _brought(name: str, ours: Callable[[Pace], Measured], peer: Callable[[Pace], Measured]) -> Comparison:
    return _row(
        f"{name}, events brought, p50", Delays(partial(ours, brought)).at(50), Delays(partial(peer, brought)).at(50)
    )


def achieved() -> float:
    """Entries a second that a subscriber was given when so many were published."""
    count = HIGH_RATE * SECONDS
    late = run(_ours(lambda: _kept(HIGH_RATE, count), count))
    return count / (SECONDS + late[-1] / 1e9)


async def _ours(pace: Pace, count: int = EVENTS) -> list[int]:
    with journal_url() as url:
        async with open_journal(url) as journal, asyncio.TaskGroup() as tasks:
            await journal.open_run(reader.RUN)
            reading = tasks.create_task(reader.delays(journal, count))
            await _sent(pace(), lambda due: journal.append(Event(run_id=reader.RUN, payload=due)))
            return await reading


async def _ours_apart(pace: Pace) -> list[int]:
    with journal_url() as url:
        async with open_journal(url) as journal:
            await journal.append(Event(run_id=reader.RUN, payload=monotonic_ns()), open=True)
            reading = await _started(reader, url)
            await _sent(pace(), lambda due: journal.append(Event(run_id=reader.RUN, payload=due)))
            return await _latencies(reading)


async def _redis(pace: Pace) -> list[int]:
    async with redis.asyncio.from_url(valkey(None).url, max_connections=IN_FLIGHT + 4) as client:
        await client.delete(xread.STREAM)
        async with asyncio.TaskGroup() as tasks:
            reading = tasks.create_task(xread.xread_delays(client, EVENTS))
            await _sent(pace(), lambda due: client.xadd(xread.STREAM, {"p": due}))
            return await reading


async def _redis_apart(pace: Pace) -> list[int]:
    async with redis.asyncio.from_url(valkey(None).url, max_connections=IN_FLIGHT + 4) as client:
        await client.delete(xread.STREAM)
        await client.xadd(xread.STREAM, {"p": monotonic_ns()})
        reading = await _started(xread, valkey(None).url)
        await _sent(pace(), lambda due: client.xadd(xread.STREAM, {"p": due}))
        return await _latencies(reading)


async def _least(pace: Pace) -> list[int]:
    with journal_url() as url:
        publisher = bare.Publisher(await asyncpg.connect(url))
        await publisher.prepare()
        await _sent(pace(), publisher.send)
        return publisher.late


async def _least_apart(pace: Pace) -> list[int]:
    with journal_url() as url:
        publisher = bare.Publisher(await asyncpg.connect(url))
        await publisher.prepare()
        await publisher.send(monotonic_ns())
        reading = await _started(bare, url)
        await _sent(pace(), publisher.send)
        return await _latencies(reading)


async def kept() -> AsyncIterator[int]:
    """Events at their moments, or as soon after them as the loop's timers allow."""
    for _ in range(BEGINNINGS):
        async for due in _kept(RATE, AT_ONCE):
            yield due


async def _kept(rate: int, count: int) -> AsyncIterator[int]:
    for due in arrivals.dues(rate, count):
        while (left := due - monotonic_ns()) > 0:  # noqa: ASYNC110 - nothing happens at that moment but this
            await asyncio.sleep(left / 1e9)
        yield due


async def brought() -> AsyncIterator[int]:
    """The same of another process that has them at their moments, as a server's requests come to it."""
    program = [sys.executable, "-m", arrivals.__name__, str(RATE), str(AT_ONCE), str(BEGINNINGS)]
    source = await asyncio.create_subprocess_exec(*program, stdout=PIPE)  # noqa: TID251 - no gRPC here
    assert source.stdout is not None
    async for line in source.stdout:
        yield int(line)
    await source.wait()


async def _sent(dues: AsyncIterator[int], send: Send) -> None:
    room = asyncio.Semaphore(IN_FLIGHT)
    async with asyncio.TaskGroup() as tasks:
        async for due in dues:
            await room.acquire()
            tasks.create_task(_awaited(send(due))).add_done_callback(lambda _: room.release())


async def _awaited(sending: Awaitable[object]) -> None:
    await sending


async def _started(program: ModuleType, url: str) -> asyncio.subprocess.Process:
    command = [sys.executable, "-m", program.__name__, url, str(EVENTS + 1)]
    reading = await asyncio.create_subprocess_exec(*command, stdout=PIPE)  # noqa: TID251 - no gRPC here
    assert reading.stdout is not None
    await reading.stdout.readline()
    return reading


async def _latencies(reading: asyncio.subprocess.Process) -> list[int]:
    output, _ = await reading.communicate()
    return [int(word) for word in output.split()][1:]  # the first one waited for the program to start

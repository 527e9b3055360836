"""From a publish to its handler in another process: how many events a second, and how soon a single one is handled."""

import asyncio
from collections.abc import Iterator
from functools import partial
from time import monotonic_ns

import anyio

from tests.bench.compare import Comparison, Side
from tests.bench.users.handled import Handled, handled
from tests.bench.users.latencies import Latencies
from tests.bench.users.queues import Running, System, peers, tape_on
from tests.bench.users.size import Size

AREA = "publish to handler"
WORKERS = (1, 4)
WARM = 50  # every side handles as many before it is measured
SINGLES = 60
PAUSE_S = 0.03


def comparisons(size: Size) -> list[Comparison]:
    ours, sqlite = tape_on("Postgres"), tape_on("SQLite")
    return [row for workers in WORKERS for row in _rates(ours, sqlite, workers, size)] + list(
        _latencies(ours, sqlite, size)
    )


def _rates(ours: System, sqlite: System, workers: int, size: Size) -> Iterator[Comparison]:
    """Everything is published as fast as it can be while the workers run; the rate is until the last one is handled."""
    crew = "1 worker" if workers == 1 else f"{workers} workers"
    mine = partial(rate, ours, workers, size)
    for name, peer in peers().items():
        yield _row(
            f"{crew}, Postgres, against {name}", "events/s", mine, partial(rate, peer, workers, size), ours, peer
        )
    yield _row(
        f"{crew}, SQLite, against Postgres", "events/s", partial(rate, sqlite, workers, size), mine, sqlite, ours
    )


def _latencies(ours: System, sqlite: System, size: Size) -> Iterator[Comparison]:
    """One event every 30 ms, one worker that has nothing else to do."""
    mine, lite = Latencies(partial(latencies, ours, size)), Latencies(partial(latencies, sqlite, size))
    for name, peer in peers().items():
        theirs = Latencies(partial(latencies, peer, size))
        for percent in (50, 99):
            title = f"a single event, Postgres, p{percent}, against {name}"
            yield _row(title, "ms", mine.at(percent), theirs.at(percent), ours, peer)
    for percent in (50, 99):
        title = f"a single event, SQLite, p{percent}, against Postgres"
        yield _row(title, "ms", lite.at(percent), mine.at(percent), sqlite, ours)


def _row(name: str, unit: str, one: Side, other: Side, ours: System, peer: System) -> Comparison:
    return Comparison(
        area=AREA, name=name, unit=unit, ours=one, peer=other, table="users", ours_is=ours.described,
        peer_is=peer.described,
    )  # fmt: skip


def rate(system: System, workers: int, size: Size) -> float:
    return asyncio.run(_rate(system, workers, size.count(system.events, least=20)))


async def _rate(system: System, workers: int, count: int) -> float:
    with handled() as seen:
        async with system.run(workers, seen.environment) as running:
            await warm_up(running, seen)
            began = monotonic_ns()
            await running.publish(range(WARM, WARM + count))
            await seen.reach(WARM + count)
            return count / ((max(seen.times().values()) - began) / 1e9)


def latencies(system: System, size: Size) -> list[float]:
    return asyncio.run(_latencies_of(system, size.count(SINGLES, least=3)))


async def _latencies_of(system: System, count: int) -> list[float]:
    with handled() as seen:
        async with system.run(1, seen.environment) as running:
            await warm_up(running, seen)
            sent = {}
            for number in range(WARM, WARM + count):
                await anyio.sleep(PAUSE_S)
                sent[number] = monotonic_ns()
                await running.publish([number])
                await seen.reach(number + 1)
            times = seen.times()
    return [(times[number] - at) / 1e9 for number, at in sent.items()]


async def warm_up(running: Running, seen: Handled) -> None:
    """Until the workers have started and handled something."""
    await running.publish(range(WARM))
    try:
        await seen.reach(WARM)
    except AssertionError as error:
        raise AssertionError(f"{error}; {running.workers[0].log[-2000:]}") from error

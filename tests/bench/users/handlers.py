"""From a publish to its handler in another process: how many events a second, and how soon a single one is handled."""

import asyncio
from collections.abc import Iterator
from functools import partial
from time import monotonic_ns

import anyio

from tests.bench.compare import Comparison, Side
from tests.bench.users.figures import Figures, percentiles
from tests.bench.users.handled import Handled, handled
from tests.bench.users.queues import Running, System, peers, tape_on
from tests.bench.users.size import Size

AREA = "publish to handler"
MANY = 4
WARM = 50  # every side handles as many before it is measured
SINGLES = 60
SINGLES_S = 5.0  # of a peer that polls, fewer are measured
PAUSE_S = 0.03


def comparisons(size: Size) -> list[Comparison]:
    ours, sqlite = tape_on("Postgres"), tape_on("SQLite")
    return [*_one_worker(ours, sqlite, size), *_many_workers(ours, sqlite, size)]


def _one_worker(ours: System, sqlite: System, size: Size) -> Iterator[Comparison]:
    """Everything is published as fast as it can be while a worker runs; then one event every 30 ms."""
    mine, lite = one_worker(ours, size), one_worker(sqlite, size)
    for name, peer in peers().items():
        theirs = one_worker(peer, size)
        yield _row(
            f"1 worker, Postgres, against {name}", "events/s", mine.side("rate"), theirs.side("rate"), ours, peer
        )
        for cut in ("p50", "p99"):
            title = f"a single event, Postgres, {cut}, against {name}"
            yield _row(title, "ms", mine.side(cut), theirs.side(cut), ours, peer)
    yield _row("1 worker, SQLite, against Postgres", "events/s", lite.side("rate"), mine.side("rate"), sqlite, ours)
    for cut in ("p50", "p99"):
        title = f"a single event, SQLite, {cut}, against Postgres"
        yield _row(title, "ms", lite.side(cut), mine.side(cut), sqlite, ours)


def _many_workers(ours: System, sqlite: System, size: Size) -> Iterator[Comparison]:
    mine = partial(many_workers, ours, size)
    for name, peer in peers().items():
        theirs = partial(many_workers, peer, size)
        yield _row(f"{MANY} workers, Postgres, against {name}", "events/s", mine, theirs, ours, peer)
    lite = partial(many_workers, sqlite, size)
    yield _row(f"{MANY} workers, SQLite, against Postgres", "events/s", lite, mine, sqlite, ours)


def _row(name: str, unit: str, one: Side, other: Side, ours: System, peer: System) -> Comparison:
    return Comparison(
        area=AREA, name=name, unit=unit, ours=one, peer=other, table="users", ours_is=ours.described,
        peer_is=peer.described,
    )  # fmt: skip


def one_worker(system: System, size: Size) -> Figures:
    """The rate, p50 and p99 of a system."""
    events, singles = size.count(system.events, least=20), size.count(SINGLES, least=3)
    return Figures(lambda: asyncio.run(_one_worker_of(system, events, singles)))


async def _one_worker_of(system: System, events: int, singles: int) -> dict[str, float]:
    with handled() as seen:
        async with system.run(1, seen.environment) as running:
            await warm_up(running, seen)
            rate = await _rate(running, seen, events)
            return {"rate": rate, **percentiles(await _latencies(running, seen, WARM + events, singles))}


def many_workers(system: System, size: Size) -> float:
    return asyncio.run(_many_workers_of(system, size.count(system.events, least=20)))


async def _many_workers_of(system: System, events: int) -> float:
    with handled() as seen:
        async with system.run(MANY, seen.environment) as running:
            await warm_up(running, seen)
            return await _rate(running, seen, events)


async def warm_up(running: Running, seen: Handled) -> None:
    """Until the workers have started and handled something."""
    await running.publish(range(WARM))
    try:
        await seen.reach(WARM)
    except AssertionError as error:
        raise AssertionError(f"{error}; {running.workers[0].log[-2000:]}") from error


async def _rate(running: Running, seen: Handled, events: int) -> float:
    """Events a second from the first publish until the last one is handled; none is handled twice."""
    began = monotonic_ns()
    await running.publish(range(WARM, WARM + events))
    await seen.reach(WARM + events)
    return events / ((max(seen.times().values()) - began) / 1e9)


async def _latencies(running: Running, seen: Handled, first: int, count: int) -> list[float]:
    """Seconds from before each publish until its handler; a worker with nothing else to do."""
    sent: dict[int, int] = {}
    began = monotonic_ns()
    while len(sent) < count and monotonic_ns() - began < SINGLES_S * 1e9:
        await anyio.sleep(PAUSE_S)
        number = first + len(sent)
        sent[number] = monotonic_ns()
        await running.publish([number])
        await seen.reach(number + 1)
    times = seen.times()
    return [(times[number] - at) / 1e9 for number, at in sent.items()]

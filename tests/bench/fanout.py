"""What it costs to wake a reader: one entry a push, everybody woken, CPU time a delivery."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import aclosing
from functools import partial
from time import process_time
from typing import Any, NamedTuple

from tape.bus.append import Appender
from tape.bus.journal import Journal
from tape.bus.tail import Tail
from tape.compose import open_store
from tape.core.event import Entry, Event
from tape.core.ids import Epoch, GlobalSeq, RunId
from tests.bench.compare import Comparison, Goal
from tests.bench.loop import run
from tests.bench.waiting import Buffer, WaiterList

AREA = "fan-out"
UNIT = "CPU µs/delivery"
RUN = RunId("run")
DELIVERIES = 200_000


class Audience(NamedTuple):
    """Readers, and how many of them wait."""

    readers: int
    read: Callable[[], Coroutine[Any, Any, None]]
    waiting: Callable[[], int]


def comparisons() -> list[Comparison]:
    bare, run_streams, seed = partial(buffers, 1_000), partial(streams, 1_000), partial(waiter_lists, 1_000)
    row = partial(Comparison, area=AREA, unit=UNIT)
    return [
        row(name="1,000 streams of a run against a bare buffer", ours=run_streams, peer=bare, goal=Goal("<=", 1.8)),
        row(name="1,000 streams of everything against a bare buffer", ours=partial(streams, 1_000, None), peer=bare),
        row(name="1,000 streams against 100", ours=run_streams, peer=partial(streams, 100), goal=Goal("<=", 1.3)),
        row(name="seed 000's waiter list against 1,000 streams", ours=seed, peer=run_streams, goal=Goal(">=", 8)),
    ]


def buffers(readers: int) -> float:
    """The least there can be: a list everybody reads, and a future for each reader that waits."""
    return run(_buffers(readers, DELIVERIES // readers))


def waiter_lists(readers: int) -> float:
    """As seed 000 waits; a tenth of the deliveries, because they are slow."""
    return run(_waiter_lists(readers, DELIVERIES // readers // 10))


def streams(readers: int, run_id: RunId | None = RUN) -> float:
    """What users get: `async for entry in journal.stream(...)`."""
    return run(_streams(readers, DELIVERIES // readers, run_id))


async def _buffers(readers: int, count: int) -> float:
    buffer = Buffer[Entry]()
    return await _cost(Audience(readers, partial(buffer.read, count), lambda: len(buffer.waiting)), count, buffer.push)


async def _waiter_lists(readers: int, count: int) -> float:
    waiters = WaiterList[Entry]()
    audience = Audience(readers, partial(waiters.read, count), lambda: len(waiters.waiting))
    return await _cost(audience, count, waiters.push)


async def _streams(readers: int, count: int, run_id: RunId | None) -> float:
    async with open_store("memory://") as store:
        tail = Tail(GlobalSeq(0))
        view = tail.join(run_id)
        journal = Journal(store, tail, Appender(store.journal, lambda entries: None))
        audience = Audience(readers, partial(_read, journal, run_id, count), lambda: len(view.waiting))
        return await _cost(audience, count, lambda entry: tail.push([entry]))


def entries(count: int) -> list[Entry]:
    event = Event(run_id=RUN, payload={"n": 1})
    return [event.at(place, place, 1, 0, Epoch(1)) for place in range(1, count + 1)]


async def _read(journal: Journal, run_id: RunId | None, count: int) -> None:
    async with aclosing(journal.stream(run_id=run_id)) as stream:
        async for entry in stream:
            if entry.seq == count:
                return


async def _cost(audience: Audience, count: int, push: Callable[[Entry], object]) -> float:
    """Microseconds of CPU time a delivery; a reader that missed one would never end."""
    *timed, last = entries(count)
    async with asyncio.TaskGroup() as tasks:
        for _ in range(audience.readers):
            tasks.create_task(audience.read())
        while audience.waiting() < audience.readers:  # noqa: ASYNC110 - nobody says when the last one waits
            await asyncio.sleep(0)
        started = process_time()
        for entry in timed:
            push(entry)
            await asyncio.sleep(0)  # one turn of the loop wakes everybody, the next one lets them wait again
            await asyncio.sleep(0)
        elapsed = process_time() - started
        push(last)
    return elapsed / audience.readers / len(timed) * 1e6

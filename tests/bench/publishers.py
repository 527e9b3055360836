"""Publishers of single events in one event loop, each waiting for its own acknowledgement."""

import asyncio
from collections.abc import Iterable, Sequence
from time import perf_counter

from tape.bus.journal import Journal
from tape.compose import run_journal
from tape.core.event import Event
from tape.store.sqlite.store import open_store
from tests.bench.loop import run
from tests.bench.workload import database, event, events


def publish(publishers: int, count: int) -> float:
    """Events a second, made and appended one by one."""
    shares = [map(event, range(number, count, publishers)) for number in range(publishers)]
    return count / run(_seconds(shares))


def publish_prepared(publishers: int, count: int) -> float:
    """The same with events that were made before, as the peer's rows are."""
    made = events(count)
    return count / run(_seconds([made[number::publishers] for number in range(publishers)]))


async def _seconds(shares: Sequence[Iterable[Event]]) -> float:
    with database() as location:
        async with open_store(location) as store, run_journal(store) as journal:
            started = perf_counter()
            async with asyncio.TaskGroup() as tasks:
                for share in shares:
                    tasks.create_task(_publisher(journal, share))
            return perf_counter() - started


async def _publisher(journal: Journal, share: Iterable[Event]) -> None:
    for each in share:
        await journal.append(each, open=True)

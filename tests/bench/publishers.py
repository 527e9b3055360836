"""Publishers of single events in one event loop, each waiting for its own acknowledgement."""

import asyncio
from time import perf_counter

from tape.bus.journal import Journal
from tape.compose import run_journal
from tape.store.sqlite.store import open_store
from tests.bench.loop import run
from tests.bench.workload import database, event


def publish(publishers: int, count: int) -> float:
    """Events a second, made and appended one by one."""
    return run(_publish(publishers, count))


async def _publish(publishers: int, count: int) -> float:
    with database() as location:
        async with open_store(location) as store, run_journal(store) as journal:
            started = perf_counter()
            async with asyncio.TaskGroup() as tasks:
                for number in range(publishers):
                    tasks.create_task(_publisher(journal, range(number, count, publishers)))
            return count / (perf_counter() - started)


async def _publisher(journal: Journal, numbers: range) -> None:
    for number in numbers:
        await journal.append(event(number), open=True)

"""The peer of `tasks`: pgqueuer in one process with its publisher."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

import asyncpg

from tests.bench.loop import run
from tests.bench.quiet import quiet
from tests.bench.servers import postgres
from tests.bench.tasks_counting import TEXT, Handle, Waits, percentile


def pick_up_pgqueuer(percent: int) -> float:
    return percentile(run(_pick_ups_pgqueuer()), percent)


async def _pick_ups_pgqueuer() -> list[float]:
    from pgqueuer import AsyncpgPoolDriver, Queries, QueueManager

    waits = Waits()
    with quiet(), postgres().database() as url:
        async with asyncpg.create_pool(url) as pool, asyncio.TaskGroup() as tasks:
            queries = Queries(AsyncpgPoolDriver(pool))
            await queries.install()
            manager = QueueManager(queries)
            manager.entrypoint("rule")(_taking(waits.end))
            working = tasks.create_task(manager.run(batch_size=10, dequeue_timeout=timedelta(seconds=1)))
            await waits.all(lambda: queries.enqueue(["rule"], [TEXT], [0]))
            manager.shutdown.set()
            await working
    return waits.found


def _taking(handle: Handle) -> Callable[[object], Awaitable[None]]:
    async def take(job: object) -> None:
        await handle()

    return take

"""The peers of `tasks`: each puts in and works off as its documentation says, with an async handler if it has one."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from time import perf_counter

import asyncpg

from tests.bench.loop import run
from tests.bench.quiet import quiet
from tests.bench.servers import postgres, valkey
from tests.bench.tasks_counting import BATCH, FEW, FIRST, TASKS, TEXT, Count, Handle, Times, Waits, percentile


def pgqueuer(is_processing: bool) -> float:
    return run(_pgqueuer()).rate(TASKS, is_processing=is_processing)


def pick_up_pgqueuer(percent: int) -> float:
    return percentile(run(_pick_ups_pgqueuer()), percent)


def procrastinate() -> float:
    return run(_procrastinate()).rate(FEW, is_processing=False)


def taskiq() -> float:
    return run(_taskiq()).rate(FEW, is_processing=False)


async def _pgqueuer() -> Times:
    from pgqueuer import AsyncpgPoolDriver, Queries

    with quiet(), _empty_url() as url:
        async with asyncpg.create_pool(url) as pool:
            queries = Queries(AsyncpgPoolDriver(pool))
            await queries.install()
            await queries.enqueue(["rule"] * FIRST, [TEXT] * FIRST, [0] * FIRST)
            await _drain(queries, FIRST)
            began = perf_counter()
            for _ in range(TASKS // BATCH):
                await queries.enqueue(["rule"] * BATCH, [TEXT] * BATCH, [0] * BATCH)
            put_in = perf_counter()
            await _drain(queries, TASKS)
            return Times(began, put_in, perf_counter())
    raise AssertionError("unreachable")


async def _drain(queries: object, count: int) -> None:
    from pgqueuer import QueueManager
    from pgqueuer.types import QueueExecutionMode

    manager, counted = QueueManager(queries), Count(count)
    manager.entrypoint("rule")(_taking(counted.one))
    await manager.run(batch_size=BATCH, mode=QueueExecutionMode.drain)
    assert counted.is_done.is_set()


async def _pick_ups_pgqueuer() -> list[float]:
    from pgqueuer import AsyncpgPoolDriver, Queries, QueueManager

    waits = Waits()
    with quiet(), _empty_url() as url:
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


async def _procrastinate() -> Times:
    from procrastinate import App, PsycopgConnector

    with quiet(), _empty_url() as url:
        app = App(connector=PsycopgConnector(conninfo=url, min_size=8, max_size=22))
        count = Count(FEW)
        rule = app.task(name="rule")(_taking(count.one))
        async with app.open_async():
            await app.schema_manager.apply_schema_async()
            began = perf_counter()
            await rule.batch_defer_async(*({"job": 1} for _ in range(FEW)))
            put_in = perf_counter()
            await app.run_worker_async(wait=False, concurrency=20, install_signal_handlers=False, listen_notify=False)
            assert count.is_done.is_set()
            return Times(began, put_in, perf_counter())
    raise AssertionError("unreachable")


async def _taskiq() -> Times:
    from taskiq.api import run_receiver_task
    from taskiq_redis import ListQueueBroker

    with quiet():
        broker = ListQueueBroker(valkey("always").url, queue_name=f"bench-{perf_counter()}")
        count = Count(FEW)
        rule = broker.task(task_name="rule")(_taking(count.one))
        await broker.startup()
        began = perf_counter()
        async with asyncio.TaskGroup() as tasks:
            for _ in range(FEW):
                tasks.create_task(rule.kiq(1))
        put_in = perf_counter()
        async with asyncio.TaskGroup() as tasks:
            working = tasks.create_task(run_receiver_task(broker, max_async_tasks=100, max_prefetch=100))
            await count.is_done.wait()
            ended = perf_counter()
            working.cancel()
        await broker.shutdown()
        return Times(began, put_in, ended)


def dbos() -> float:
    """Its workflows are threads' work, and so it has no loop."""
    from dbos import DBOS

    with quiet(), _empty_url() as url:
        DBOS(config={"name": "bench", "system_database_url": url, "run_admin_server": False, "log_level": "CRITICAL"})
        rule = DBOS.workflow(name="rule")(_nothing)
        DBOS.launch()
        try:
            DBOS.register_queue("bench", polling_interval_sec=0.01)
            queue = DBOS.retrieve_queue("bench")
            began = perf_counter()
            for handle in [queue.enqueue(rule, 1) for _ in range(FEW)]:
                handle.get_result(polling_interval_sec=0.01)
            return FEW / (perf_counter() - began)
        finally:
            DBOS.destroy(destroy_registry=True)


def _nothing(job: int) -> None:
    return


def _taking(handle: Handle) -> Callable[[object], Awaitable[None]]:
    async def take(job: object) -> None:
        await handle()

    return take


@contextmanager
def _empty_url() -> Iterator[str]:
    server = postgres()
    with server.database() as url:
        yield url

"""The systems that hand events to handlers, each with its workers as its documentation starts them."""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    ExitStack,
    asynccontextmanager,
    contextmanager,
)
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any, TypeAlias

import asyncpg

import tape
from tests.bench.users.events import TYPE
from tests.bench.users.processes import Program, running, script
from tests.bench.users.servers import REDIS, redis_url
from tests.bench.users.stores import POSTGRES, Store, empty_store
from tests.bench.users.versions import named

PROGRAMS = "tests.bench.users.programs"
PGQUEUER_WORKER = (sys.executable, "-m", f"{PROGRAMS}.pgqueuer_worker")
BATCH = 100
AT_ONCE = 16  # publishes of a peer that has no batches

Publish: TypeAlias = Callable[[Sequence[int]], Awaitable[object]]
Environment: TypeAlias = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Running:
    """A system with its workers: publishes numbers, of which each is handled by one worker."""

    publish: Publish
    workers: Sequence[Program]
    url: str


@dataclass(frozen=True, slots=True)
class System:
    """A system, how it is run, and how many events take it a second or two."""

    name: str
    described: str
    events: int
    run: Callable[[int, Environment], AbstractAsyncContextManager[Running]]


@asynccontextmanager
async def _tape(store: Store, workers: int, environment: Environment) -> AsyncIterator[Running]:
    """`tape work MODULE --store URL`, once for each worker; published by `tape.open_journal` in this process."""
    with empty_store(store) as url:
        async with tape.open_journal(url) as journal:
            command = [script("tape"), "work", f"{PROGRAMS}.tape_rules", "--store", url]
            with _workers(command, workers, environment) as programs:

                async def publish(numbers: Sequence[int]) -> None:
                    events = [tape.Event(run_id="orders", type=TYPE, payload={"number": n}) for n in numbers]
                    await journal.append(events, open=True)

                yield Running(partial(_in_batches, publish), programs, url)


@asynccontextmanager
async def _pgqueuer(workers: int, environment: Environment) -> AsyncIterator[Running]:
    """`PgQueuer.run`, after `pgq install` and the `pgq autovac` that its page guides/performance-tuning recommends."""
    library = import_module("pgqueuer")
    with empty_store("Postgres") as url:
        environment = {**environment, "PGDSN": url}
        for verb in ("install", "autovac"):
            run_command([script("pgq"), verb], environment)
        with _workers(PGQUEUER_WORKER, workers, environment) as programs:
            async with asyncpg.create_pool(url) as pool:
                queries = library.Queries(library.AsyncpgPoolDriver(pool))

                async def publish(numbers: Sequence[int]) -> None:
                    payloads = [str(number).encode() for number in numbers]
                    await queries.enqueue(["handle"] * len(payloads), payloads, [0] * len(payloads))

                yield Running(partial(_in_batches, publish), programs, url)


@asynccontextmanager
async def _procrastinate(workers: int, environment: Environment) -> AsyncIterator[Running]:
    """`procrastinate worker --concurrency=30`, the value of its page howto/production/concurrency."""
    with empty_store("Postgres") as url:
        environment = {**environment, "DATABASE_URL": url}
        name = f"--app={PROGRAMS}.procrastinate_app.app"
        run_command([script("procrastinate"), name, "schema", "--apply"], environment)
        command = [script("procrastinate"), name, "worker", "--concurrency=30"]
        with _workers(command, workers, environment) as programs:
            async with procrastinate_task(url) as task:

                async def publish(numbers: Sequence[int]) -> None:
                    await task.batch_defer_async(*({"number": number} for number in numbers))

                yield Running(partial(_in_batches, publish), programs, url)


@asynccontextmanager
async def procrastinate_task(url: str) -> AsyncIterator[Any]:
    """The same task as the worker's; its function is never called here."""
    library = import_module("procrastinate")
    app = library.App(connector=library.PsycopgConnector(conninfo=url))

    @app.task(name="handle")  # type: ignore[untyped-decorator]
    async def handle(number: int) -> None:
        raise AssertionError("this process has no worker")

    async with app.open_async():
        yield handle


@asynccontextmanager
async def _taskiq(workers: int, environment: Environment) -> AsyncIterator[Running]:
    """`taskiq worker MODULE:broker --workers N`."""
    url = redis_url()
    environment = {**environment, "REDIS_STREAM_URL": url}
    command = [script("taskiq"), "worker", f"{PROGRAMS}.taskiq_tasks:broker", "--log-level", "WARNING"]
    with running([*command, "--workers", str(workers)], environment) as program:
        broker = import_module("taskiq_redis").RedisStreamBroker(url=url)

        @broker.task(task_name="handle")  # type: ignore[untyped-decorator]
        async def handle(number: int) -> None:
            raise AssertionError("this process has no worker")

        await broker.startup()
        yield Running(partial(_one_by_one, handle.kiq), [program], url)
        await broker.shutdown()


@asynccontextmanager
async def dbos(store: Store, workers: int, environment: Environment) -> AsyncIterator[Running]:
    """Its queue worker, and a DBOSClient that enqueues from this process."""
    with empty_store(store) as url:
        client = dbos_client(url)
        options = {"queue_name": "bench-queue", "workflow_name": "handle"}
        with ExitStack() as stack:
            programs = [stack.enter_context(dbos_worker(url, n, environment)) for n in range(workers)]
            yield Running(partial(_one_by_one, partial(client.enqueue_async, options)), programs, url)
        client.destroy()


def dbos_client(url: str) -> Any:
    """A client of tables that `dbos migrate` has made (docs.dbos.dev/production/checklist)."""
    run_command([script("dbos"), "migrate", "--sys-db-url", url], {})
    return import_module("dbos").DBOSClient(system_database_url=url, application_name="bench-worker")


def dbos_worker(url: str, number: int, environment: Environment) -> AbstractContextManager[Program]:
    own = {**environment, "DBOS_SYSTEM_DATABASE_URL": url, "DBOS_EXECUTOR": f"executor-{number}"}
    return running([sys.executable, "-m", f"{PROGRAMS}.dbos_worker"], own)


@contextmanager
def _workers(command: Sequence[str], count: int, environment: Environment) -> Iterator[list[Program]]:
    with ExitStack() as stack:
        yield [stack.enter_context(running(command, environment)) for _ in range(count)]


def run_command(command: Sequence[str], environment: Environment) -> None:
    """A command that ends by itself."""
    with running(command, environment) as program:
        program.wait()


async def _in_batches(publish: Publish, numbers: Sequence[int]) -> None:
    for first in range(0, len(numbers), BATCH):
        await publish(numbers[first : first + BATCH])


async def _one_by_one(publish: Callable[[int], Awaitable[object]], numbers: Sequence[int]) -> None:
    async def some(mine: Sequence[int]) -> None:
        for number in mine:
            await publish(number)

    async with asyncio.TaskGroup() as tasks:
        for first in range(min(AT_ONCE, len(numbers))):
            tasks.create_task(some(numbers[first::AT_ONCE]))


def tape_on(store: Store) -> System:
    described = "`tape work MODULE --store URL` (docs/tutorial.md); published in batches of 100 by `tape.open_journal`"
    return System(f"Tape on {store}", described, 1_000, partial(_tape, store))


def peers() -> dict[str, System]:
    return {
        "pgqueuer": System(
            "pgqueuer",
            f"{named('pgqueuer')}: `pgq.run(batch_size=25)`, asyncpg pool, `pgq autovac`, "
            f"durable tables; enqueued in batches of 100; {POSTGRES}",
            8_000,
            _pgqueuer,
        ),
        "procrastinate": System(
            "procrastinate",
            f"{named('procrastinate')}: `procrastinate worker --concurrency=30`; `batch_defer_async` "
            f"of 100; {POSTGRES}",
            500,
            _procrastinate,
        ),
        "taskiq": System(
            "taskiq",
            f"{named('taskiq')}: `taskiq worker`, RedisStreamBroker, 16 `kiq` at a time; {REDIS}",
            1_000,
            _taskiq,
        ),
        "DBOS": System(
            "DBOS",
            f"{named('dbos')}: its queue worker, 16 `DBOSClient.enqueue_async` at a time; {POSTGRES}",
            300,
            partial(dbos, "Postgres"),
        ),
    }

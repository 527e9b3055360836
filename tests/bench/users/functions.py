"""Durable functions: what a step costs, and how soon a run goes on after its worker was killed."""

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from functools import partial
from time import monotonic_ns
from typing import Any, Protocol, TypeAlias

import anyio

import tape
from tests.bench.compare import Comparison, Side
from tests.bench.users.figures import Figures
from tests.bench.users.handled import Handled, handled
from tests.bench.users.processes import Program, running
from tests.bench.users.queues import PROGRAMS, dbos_client, dbos_worker
from tests.bench.users.size import Size
from tests.bench.users.stores import POSTGRES, STORES, Store, empty_store
from tests.bench.users.versions import named

AREA = "durable functions"
STEPS = 100
RUNS = 8
LEASE_S = 400  # longer than the lease of 120 s that a killed worker leaves behind

TAPE = "`tape.run_agent(APP, function, URL)` in a process of its own (docs/runs.md), runs begun by `tape.aconnect(URL)`"
DBOS = f"{named('dbos')}, its queue worker in a process of its own, enqueued by DBOSClient"

Environment: TypeAlias = Mapping[str, str]


class Functions(Protocol):
    """A system of durable functions in an empty database."""

    def worker(self, environment: Environment) -> AbstractContextManager[object]:
        """A process that executes the functions."""

    async def begin(self, kind: str, first: int, steps: int) -> Any:
        """Begins a run that notes `first` and then `first + 1`."""

    async def is_waiting(self, begun: Any, steps: int) -> bool:
        """Whether the run has recorded its steps and waits."""

    async def send(self, begun: Any) -> None:
        """What the run waits for."""


def comparisons(size: Size) -> list[Comparison]:
    return [row for store in STORES for row in _rows(store, size)]


def _rows(store: Store, size: Size) -> Iterator[Comparison]:
    steps, runs = size.count(STEPS, least=5), size.count(RUNS, least=2)
    row = partial(_row, f"{DBOS}; {POSTGRES if store == 'Postgres' else 'its SQLite'}")
    ours, dbos = _steps(_tape, store, ("steps", "samples"), runs, steps), _steps(_dbos, store, ("steps",), runs, steps)
    yield row(f"a step (an effect), {store}, against DBOS", "ms", ours.side("steps"), dbos.side("steps"))
    yield row(f"a step (a sample), {store}, against DBOS", "ms", ours.side("samples"), dbos.side("steps"))
    yield row(f"{RUNS} runs at once, {store}, against DBOS", "steps/s", ours.side("at once"), dbos.side("at once"))
    name = f"a new process ends a run of {STEPS} steps that waited when its worker was killed, {store}, against DBOS"
    yield row(name, "ms", partial(resume_ms, _tape, store, steps), partial(resume_ms, _dbos, store, steps))
    if size.is_whole and store == "Postgres":  # it takes as long as a lease, two minutes, at any size
        name = f"the same, killed in the middle of a step, {store}, against DBOS"
        takeovers = partial(takeover_ms, _tape, store, steps), partial(takeover_ms, _dbos, store, steps)
        yield row(name, "ms", *takeovers, turns=1)


def _row(dbos: str, name: str, unit: str, ours: Side, peer: Side, turns: int | None = None) -> Comparison:
    return Comparison(
        area=AREA, name=name, unit=unit, ours=ours, peer=peer, table="users", ours_is=TAPE, peer_is=dbos, turns=turns
    )


def _steps(system: Any, store: Store, kinds: Sequence[str], runs: int, steps: int) -> Figures:
    """Milliseconds from one step to the next in the only run, for each kind, and steps a second of some runs."""
    return Figures(lambda: asyncio.run(_measure_steps(system, store, kinds, runs, steps)))


async def _measure_steps(system: Any, store: Store, kinds: Sequence[str], runs: int, steps: int) -> dict[str, float]:
    with handled() as seen:
        async with system(store) as functions:
            with functions.worker(seen.environment):
                await functions.begin("steps", 0, 3)  # so that the worker has started and its statements are prepared
                await seen.reach(2)
                found = {kind: await _step_ms(functions, seen, kind, steps) for kind in kinds}
                return {**found, "at once": await _steps_per_s(functions, seen, runs, steps)}


async def _step_ms(functions: Functions, seen: Handled, kind: str, steps: int) -> float:
    first = seen.count()
    await functions.begin(kind, first, steps)
    await seen.reach(first + 2)
    times = seen.times()
    return (times[first + 1] - times[first]) / 1e6 / steps


async def _steps_per_s(functions: Functions, seen: Handled, runs: int, steps: int) -> float:
    """From the first run's begin until the last one's end, with as many at once as the worker takes by default."""
    first, began = seen.count(), monotonic_ns()
    for number in range(first, first + 2 * runs, 2):
        await functions.begin("steps", number, steps)
    await seen.reach(first + 2 * runs)
    return runs * steps / ((max(seen.times().values()) - began) / 1e9)


def resume_ms(system: Any, store: Store, steps: int) -> float:
    """Milliseconds from the start of the new process; what the run waited for is there already."""
    return asyncio.run(_resume_ms(system, store, steps))


async def _resume_ms(system: Any, store: Store, steps: int) -> float:
    with handled() as seen:
        async with system(store) as functions:
            with functions.worker(seen.environment) as worker:
                begun = await functions.begin("waiting", 0, steps)
                await seen.reach(1)
                while not await functions.is_waiting(begun, steps):  # noqa: ASYNC110 - another process gets there
                    await anyio.sleep(0.05)
                worker.kill()
            await functions.send(begun)
            began = monotonic_ns()
            with functions.worker(seen.environment):
                await seen.reach(2)
                return (seen.times()[1] - began) / 1e6


def takeover_ms(system: Any, store: Store, steps: int) -> float:
    """Milliseconds from the kill until a process that is started at once has ended the run."""
    return asyncio.run(_takeover_ms(system, store, steps))


async def _takeover_ms(system: Any, store: Store, steps: int) -> float:
    with handled() as seen:
        async with system(store) as functions:
            with functions.worker({**seen.environment, "HANGS": "1"}) as worker:
                await functions.begin("hanging", 0, steps)
                await seen.reach(1)
                began = monotonic_ns()
                worker.kill()
            with functions.worker(seen.environment):
                await seen.reach(2, LEASE_S)
                return (seen.times()[1] - began) / 1e6


class _TapeFunctions:
    def __init__(self, url: str, client: Any) -> None:
        self._url = url
        self._client = client

    def worker(self, environment: Environment) -> AbstractContextManager[Program]:
        return running([sys.executable, "-m", f"{PROGRAMS}.tape_agent", self._url], environment)

    async def begin(self, kind: str, first: int, steps: int) -> str:
        labels = {"kind": kind, "first": str(first), "count": str(steps)}
        begun = await self._client.runs.begin("bench", invocation=f"{kind}-{first}", labels=labels)
        return str(begun.run.run_id)

    async def is_waiting(self, begun: str, steps: int) -> bool:
        return bool((await self._client.runs.get(begun)).status == tape.RunStatus.WAITING)

    async def send(self, begun: str) -> None:
        await self._client.gates.send(begun, "go", "yes")


@asynccontextmanager
async def _tape(store: Store) -> AsyncIterator[Functions]:
    with empty_store(store) as url:
        async with tape.aconnect(url) as client:
            yield _TapeFunctions(url, client)


class _DbosFunctions:
    def __init__(self, url: str, client: Any) -> None:
        self._url = url
        self._client = client

    def worker(self, environment: Environment) -> AbstractContextManager[Program]:
        return dbos_worker(self._url, 0, environment)

    async def begin(self, kind: str, first: int, steps: int) -> str:
        options = {"queue_name": "bench-queue", "workflow_name": kind, "workflow_id": f"{kind}-{first}"}
        await self._client.enqueue_async(options, first, steps)
        return f"{kind}-{first}"

    async def is_waiting(self, begun: str, steps: int) -> bool:
        return len(await self._client.list_workflow_steps_async(begun)) > steps

    async def send(self, begun: str) -> None:
        await self._client.send_async(begun, "yes", "go")


@asynccontextmanager
async def _dbos(store: Store) -> AsyncIterator[Functions]:
    with empty_store(store) as url:
        client = dbos_client(url)
        yield _DbosFunctions(url, client)
        client.destroy()

"""A sweep of a hundred forks on Spark against the same forks played one by one."""

import atexit
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TypeAlias

from pyspark.sql import SparkSession

from tape.bus.journal import Journal
from tape.cli.demo.arena.producer import arena
from tape.cli.producers import load_producers
from tape.cli.run.sweep import find_producer
from tape.compose import open_store, run_journal
from tape.core.errors import RunNotFound
from tape.core.event import Event
from tape.core.ids import RunId
from tape.core.ports import Store
from tape.core.run import RunRecord
from tape.core.run_query import CLOSED_RUNS
from tape.lake.session import open_session
from tape.lake.sweep import SweepOrder, sweep
from tape.runs.forks import ForkSpec, open_forks
from tests.bench.compare import Comparison
from tests.bench.loop import run
from tests.bench.workload import FOLDER, database

AREA = "history"
FORKS = 100
TURNS = 10
HISTORY = 50
CORES = 2
PARENT = RunId("world")
ORDER = SweepOrder(
    at_seq=HISTORY * 20,
    vary={"food": list(range(10)), "gold": list(range(10))},
    n_turns=TURNS,
    producer="arena",
)

Play: TypeAlias = Callable[[Store, Journal, RunRecord], Awaitable[None]]

_stack = ExitStack()  # what sides share lives as long as the program
atexit.register(_stack.close)


def comparisons() -> list[Comparison]:
    name = f"a sweep of {FORKS} forks of {TURNS} turns on Spark, against one by one"
    return [Comparison(area=AREA, name=name, unit="forks/s", ours=swept, peer=one_by_one)]


def swept() -> float:
    return _rate(partial(_sweep, spark()))


def one_by_one() -> float:
    return _rate(_fork)


class _Kept(list[Event]):
    """A sink that keeps its events."""

    run_id = PARENT

    def emit(self, event: Event) -> None:
        self.append(event)


def _rate(side: Play) -> float:
    with database() as location:
        return run(_timed(f"sqlite:///{location.path}", side))


async def _timed(url: str, side: Play) -> float:
    async with open_store(url) as store, run_journal(store) as journal:
        parent = await _parent(store, journal)
        started = perf_counter()
        await side(store, journal, parent)
        elapsed = perf_counter() - started
        forks = await store.runs.listed(CLOSED_RUNS)
        assert len(forks) == FORKS + 1
    return FORKS / elapsed


async def _parent(store: Store, journal: Journal) -> RunRecord:
    events = _Kept()
    arena((), None, HISTORY + 1, events)
    for first in range(0, len(events), 500):
        await journal.append(events[first : first + 500], open=True)
    await journal.close_run(PARENT)
    record = await store.runs.find(PARENT)
    if record is None:
        raise RunNotFound(PARENT)
    return record


async def _sweep(spark: SparkSession, store: Store, journal: Journal, parent: RunRecord) -> None:
    await sweep(spark, journal, parent, ORDER, partial(find_producer, "", (), "arena"))


async def _fork(store: Store, journal: Journal, parent: RunRecord) -> None:
    async with open_forks(journal, load_producers()) as forks:
        for mutation in ORDER.mutations():
            asked = ForkSpec(at_seq=ORDER.at_seq, mutation=mutation, n_turns=TURNS, producer="arena")
            await forks.settled(await forks.fork(parent, asked))


@cache
def spark() -> SparkSession:
    """A session whose first job has run, so that no side pays for what starts with it."""
    FOLDER.mkdir(exist_ok=True)
    folder = Path(_stack.enter_context(TemporaryDirectory(prefix=".sweep-", dir=FOLDER)))
    session = _stack.enter_context(open_session(f"local[{CORES}]", folder / "spark"))
    session.range(CORES).mapInArrow(lambda batches: batches, "id BIGINT").count()
    return session

"""A sweep makes the same runs as forking one by one."""

import json
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import anyio
import pytest
from pyspark.sql import SparkSession

from tape.bus.journal import Journal
from tape.cli.demo.arena.producer import arena
from tape.cli.main import run
from tape.cli.producers import load_producers
from tape.cli.run.sweep import find_producer
from tape.compose import open_store, run_journal
from tape.core.errors import RunNotFound, UsageError
from tape.core.event import Entry
from tape.core.ids import RunId
from tape.core.ports import Store
from tape.core.run import RunRecord
from tape.core.run_query import CLOSED_RUNS, OPEN_RUNS
from tape.lake.sweep import MOST, SweepOrder, sweep
from tape.runs.forks import ForkSpec, open_forks
from tape.runs.outcomes import SweptRun, differing, outcomes
from tests.lake.journals import ListSink

T = TypeVar("T")
PARENT, AT, TURNS = "world", 41, 2
VARY = {"food": [0, 500], "age": ["dark", "castle"]}
ARENA = partial(find_producer, "", (), "arena")
GRUMPY = partial(find_producer, "", ("tests.lake.failing_producer",), "grumpy")


@pytest.fixture
def played(durable_url: str) -> str:
    """A store with a run of six turns."""
    inside(durable_url, play)
    return durable_url


def inside(url: str, task: Callable[[Store, Journal], Awaitable[T]]) -> T:
    async def main() -> T:
        async with open_store(url) as store, run_journal(store) as journal:
            return await task(store, journal)
        raise AssertionError("unreachable")

    return anyio.run(main)


async def play(store: Store, journal: Journal) -> None:
    sink = ListSink(PARENT)
    arena((), None, 6, sink)
    await journal.append(sink, open=True)
    await journal.close_run(PARENT)


async def parent_of(store: Store) -> RunRecord:
    record = await store.runs.find(RunId(PARENT))
    if record is None:
        raise RunNotFound(RunId(PARENT))
    return record


async def swept(spark: SparkSession, order: SweepOrder, store: Store, journal: Journal) -> list[SweptRun]:
    load = ARENA if order.producer == "arena" else GRUMPY
    return await sweep(spark, journal, await parent_of(store), order, load)


async def one_by_one(order: SweepOrder, places: Sequence[str], store: Store, journal: Journal) -> list[RunId]:
    children = []
    async with open_forks(journal, load_producers(places)) as forks:
        for mutation in order.mutations():
            asked = ForkSpec(
                at_seq=order.at_seq, mutation=mutation, n_turns=order.n_turns, producer=order.producer, reason="why"
            )
            children.append(await forks.fork(await parent_of(store), asked))
            await forks.settled(children[-1])
    return children


async def read(run_ids: Sequence[RunId], store: Store, journal: Journal) -> list[list[Entry]]:
    return [
        [entry async for entry in journal.stream(run_id=run_id)] for run_id in run_ids
    ]  # ends where a run is closed


def without_run_id(entries: Sequence[Entry]) -> list[tuple[object, ...]]:
    """The entries of a run, with its own id replaced."""
    own = entries[-1].run_id
    return [
        (entry.seq, entry.kind, entry.type, entry.subject.replace(own, "?"), str(entry.payload_json).replace(own, "?"))
        for entry in entries
    ]


@pytest.mark.parametrize(
    ("producer", "vary", "places", "errors"),
    [
        ("arena", VARY, (), [None] * 4),
        ("grumpy", {"mood": ["good", "bad"]}, ("tests.lake.failing_producer",), [None, "RuntimeError: no"]),
    ],
    ids=["arena", "one that fails"],
)
def test_a_sweep_is_the_same_runs_as_one_by_one(
    spark: SparkSession,
    played: str,
    producer: str,
    vary: dict[str, list[object]],
    places: tuple[str, ...],
    errors: list[str | None],
) -> None:
    order = SweepOrder(at_seq=AT, vary=vary, n_turns=TURNS, producer=producer, reason="why")  # type: ignore[arg-type]

    found = inside(played, partial(swept, spark, order))
    singly = inside(played, partial(one_by_one, order, places))

    ours = inside(played, partial(read, [each.run_id for each in found]))
    theirs = inside(played, partial(read, singly))
    assert [without_run_id(run) for run in ours] == [without_run_id(run) for run in theirs]
    assert [each.mutation for each in found] == list(order.mutations())
    assert [each.error for each in found] == errors


def test_a_sweep_has_the_outcomes_of_each_fork(spark: SparkSession, url: str) -> None:
    inside(url, play)
    order = SweepOrder(at_seq=AT, vary=VARY, n_turns=TURNS, producer="arena")  # type: ignore[arg-type]

    found = inside(url, partial(swept, spark, order))

    [trunk] = inside(url, partial(read, [RunId(PARENT)]))
    for each, own in zip(found, inside(url, partial(read, [each.run_id for each in found])), strict=True):
        assert each.outcomes == outcomes(trunk[AT:], own[AT:]) and len(each.outcomes) == 3
        assert all(outcome.parent_value is not None for outcome in each.outcomes)
        assert each.differing == differing(trunk[AT:], own[AT:]) > 0 and each.last_seq == own[-1].seq
    assert len({each.outcomes for each in found}) > 1


@pytest.mark.parametrize(
    ("at_seq", "vary", "reason"),
    [(AT, {"food": ["much"]}, "refuses the mutation"), (100_000, {"food": [1]}, "can be forked at 0 to")],
)
def test_what_cannot_be_played_leaves_no_fork(
    spark: SparkSession, url: str, at_seq: int, vary: dict[str, list[object]], reason: str
) -> None:
    inside(url, play)
    order = SweepOrder(at_seq=at_seq, vary=vary, n_turns=TURNS, producer="arena")  # type: ignore[arg-type]

    with pytest.raises(UsageError, match=reason):
        inside(url, partial(swept, spark, order))

    assert [record.run_id for record in inside(url, ended)] == [PARENT]


async def ended(store: Store, journal: Journal) -> Sequence[RunRecord]:
    return [*await store.runs.listed(OPEN_RUNS), *await store.runs.listed(CLOSED_RUNS)]


@pytest.mark.parametrize(
    "vary", [{}, {"food": []}, {"food": range(MOST + 1)}], ids=["no field", "no value", "too many"]
)
def test_a_sweep_has_a_bound(vary: dict[str, list[object]]) -> None:
    with pytest.raises(UsageError, match="a sweep is 1 to 1,000 forks"):
        SweepOrder(at_seq=AT, vary=vary, n_turns=TURNS, producer="arena")  # type: ignore[arg-type]


def test_the_command_prints_every_fork(
    spark: SparkSession, url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inside(url, play)
    picture = tmp_path / "sweep.png"
    vary = ["--vary", "food=0,500", "--vary", "age=dark,castle"]
    command = ["run", "sweep", PARENT, "--store", url, "--at", str(AT), *vary, "--turns", str(TURNS)]

    assert run([*command, "--plot", str(picture), "--json"]) == 0

    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["mutation"] for line in lines] == [
        {"food": food, "age": age} for food in (0, 500) for age in ("dark", "castle")
    ]
    assert all(outcome["difference"] is not None for line in lines for outcome in line["outcomes"])
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("vary", ["food", "food=", "=1"])
def test_what_does_not_vary_is_refused(vary: str, url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["run", "sweep", PARENT, "--store", url, "--at", "1", "--vary", vary]) == 2
    assert "--vary is like food=0,100,500" in capsys.readouterr().err

"""A backfill makes the tasks that a matcher would have made from the beginning, however often it is begun."""

import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import NamedTuple

import anyio
import psutil
import pytest
from pyspark.sql import SparkSession

from tape.cli.main import run
from tape.core.errors import NotFound, UsageError
from tape.core.event import Event
from tape.core.ports import Store
from tape.core.reaction import Reaction
from tape.core.task import Hit, TaskStatus
from tape.lake import backfill
from tape.lake.archive import archive
from tape.lake.backfill import Plan, found, planned
from tape.lake.log import Log
from tape.matcher.matcher import Matcher
from tests.conftest import Scale
from tests.contract.reacting import catch_up, publish, reaction, tasks
from tests.lake.expressions import Maker
from tests.lake.plain import fill, opened
from tests.lake.test_archive import LATER, ignore
from tests.patience import PATIENCE_S

ENTRIES = 2_400
AT_ONCE = 300
TRIES = 10
PATTERNS = ["/tape/event/*/r-1", "/tape/event/**", "/tape/event/tick/**", "/tape/reaction/**"]

Made = set[tuple[str, int]]


class Place(NamedTuple):
    """A journal with its lake, its reactions, and what the live matcher has made of it."""

    folder: Path
    names: list[str]
    made: Made

    @property
    def url(self) -> str:
        return f"sqlite:///{self.folder}/journal.db"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, scale: Scale) -> Place:
    folder, names = tmp_path_factory.mktemp("backfill"), [f"rule{number}" for number in range(3)]
    made = anyio.run(live, folder, names, scale(ENTRIES))
    return Place(folder, names, made)


async def live(folder: Path, names: list[str], count: int) -> Made:
    """Reactions come, change, are paused, resumed and removed while a matcher is there now and then."""
    random, maker, url = Random(11), Maker(seed=11), f"sqlite:///{folder}/journal.db"
    async with opened(url) as (store, journal):
        for name in names:
            await define(store, random, maker, name)
        doings: list[Callable[[], Awaitable[object]]] = [
            lambda: define(store, random, maker, random.choice(names)),
            lambda: store.reactions.remove(random.choice(names)),
            lambda: halt(store, random.choice(names), random.random() < 0.5),
            lambda: catch_up(Matcher(store)),
        ]
        for _ in range(0, count, AT_ONCE):
            said = [Event(run_id=e.run_id, type=e.type, payload=e.payload, subject=e.subject)
                    for e in maker.entries(AT_ONCE) if e.payload_json is not None]  # fmt: skip
            await journal.append(said, open=True)
            await random.choice(doings)()
        for name in names:
            await define(store, random, maker, name)
            await halt(store, name, is_pausing=False)
        await catch_up(Matcher(store))
        await fill(store, Log(folder / "lake" / "journal"), url, step=count // 3)
        return await made_in(store)


async def define(store: Store, random: Random, maker: Maker, name: str) -> None:
    where = random.choice(["", maker.predicate(), maker.predicate()])
    await store.reactions.register(reaction(name, random.choice(PATTERNS), predicate_cel=where))


async def halt(store: Store, name: str, is_pausing: bool) -> None:
    record = await store.reactions.find(name)
    if record is not None and not record.is_removed:
        await (store.reactions.pause(name, "maintenance") if is_pausing else store.reactions.resume(name))


async def made_in(store: Store) -> Made:
    async with store.transaction() as tx:
        return {(row[0], row[1]) for row in await tx.fetch("SELECT reaction_id, source_global_seq FROM tape_tasks", {})}
    raise AssertionError("a transaction swallows nothing")


async def forget_everything(url: str) -> None:
    async with opened(url) as (store, _), store.transaction() as tx:
        await tx.fetch("DELETE FROM tape_tasks", {})


def filled(spark: SparkSession, url: str, lake: Path, *names: str) -> tuple[int, Made]:
    """How many tasks backfills of some reactions make, and what there is then."""

    async def plans() -> list[Plan]:
        async with opened(url, Log(lake / "journal")) as (store, journal):
            return [await planned(store, journal, name) for name in names]

    async def write(found: list[Sequence[Hit]]) -> int:
        async with opened(url) as (store, _):
            made = [await store.tasks.make(hits) for hits in found]
        return sum(made)

    async def look() -> Made:
        async with opened(url) as (store, _):
            return await made_in(store)

    hits = [some.hits for plan in anyio.run(plans) for some in found(spark, url, lake, plan) if some.hits]
    return anyio.run(write, hits), anyio.run(look)


def test_a_backfill_makes_what_the_live_matcher_has_made(spark: SparkSession, place: Place) -> None:
    anyio.run(forget_everything, place.url)

    count, made = filled(spark, place.url, place.folder / "lake", *place.names)

    assert made == place.made and count == len(made) > 500
    assert len({name for name, _ in made}) > 1


def test_a_backfill_that_is_killed_and_begun_again_makes_the_same(spark: SparkSession, place: Place) -> None:
    anyio.run(forget_everything, place.url)
    name = max(place.names, key=lambda name: sum(each == name for each, _ in place.made))
    wanted = {(each, seq) for each, seq in place.made if each == name}

    left = next(caught for _ in range(TRIES) if (caught := killed_midway(place, name)) < len(wanted))
    count, made = filled(spark, place.url, place.folder / "lake", name)
    again, _ = filled(spark, place.url, place.folder / "lake", name)

    assert 0 < left < len(wanted) and count == len(wanted) - left
    assert (made, again) == (wanted, 0)


def killed_midway(place: Place, name: str) -> int:
    """How many tasks a command had made when it was ended with everything it had started; it may have been quicker."""
    anyio.run(forget_everything, place.url)
    arguments = ["reaction", "backfill", name, "--store", place.url, "--lake", str(place.folder / "lake")]
    command = [sys.executable, "-m", "tape.cli.main", *arguments]
    environment = {**os.environ, "TAPE_DATA": str(place.folder), "TAPE_SPARK_MASTER": "local[1]"}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        anyio.run(until_some, place.url)
        end(process)
    finally:
        process.kill()
        process.wait()
    return anyio.run(until_some, place.url)


def end(process: subprocess.Popen[bytes]) -> None:
    """Ends it and what it has started, unless that has ended by itself."""
    with suppress(psutil.NoSuchProcess):
        started = psutil.Process(process.pid).children(recursive=True)
        process.kill()
        for each in started:
            each.kill()


async def until_some(url: str) -> int:
    async with opened(url) as (store, _):
        with anyio.fail_after(PATIENCE_S):
            while not (made := await made_in(store)):  # noqa: ASYNC110 - another process makes them
                await anyio.sleep(0.002)
        return len(made)
    raise AssertionError("a store swallows nothing")


async def begin(url: str, log: Log, **options: object) -> None:
    """Twenty entries, of which the older half is in the lake only, and a reaction that begins behind them."""
    async with opened(url) as (store, _):
        await publish(store, 10)
        await fill(store, log, url)
        await archive(store, log, LATER, ignore)
        await publish(store, 10, "/a/c")
        await store.reactions.register(reaction(bootstrap_from_head=True, **options))  # type: ignore[arg-type]
        await catch_up(Matcher(store))


def test_one_that_began_at_the_head_gets_the_history_it_passed_over(
    spark: SparkSession, lasting_url: str, log: Log
) -> None:
    anyio.run(begin, lasting_url, log)

    count, made = filled(spark, lasting_url, log.table.parent, "rule")

    assert count == 20 and made == {("rule", place) for place in range(1, 21)}


def test_of_a_debounced_one_the_newest_entry_of_a_subject_stands_for_the_others(
    spark: SparkSession, lasting_url: str, log: Log
) -> None:
    anyio.run(lambda: begin(lasting_url, log, debounce_ms=1_000))

    first, made = filled(spark, lasting_url, log.table.parent, "rule")
    again, _ = filled(spark, lasting_url, log.table.parent, "rule")

    assert made == {("rule", 10), ("rule", 20)} and (first, again) == (2, 0)
    assert anyio.run(coalesced, lasting_url) == [9, 9]


async def coalesced(url: str) -> list[int]:
    async with opened(url) as (store, _):
        return [task.coalesced for task in await tasks(store)]
    raise AssertionError("a store swallows nothing")


def test_what_is_too_deep_dies_once(spark: SparkSession, url: str, log: Log) -> None:
    anyio.run(chain, url, 18)

    counts = [filled(spark, url, log.table.parent, "rule")[0] for _ in range(2)]

    dead, said = anyio.run(died, url)
    assert counts == [18, 0] and (dead, said) == ([17], 1)


async def chain(url: str, length: int) -> None:
    async with opened(url) as (store, journal):
        cause = None
        for number in range(length):
            event = Event(run_id="r1", payload=number, subject="/a/b", cause=cause)
            cause = (await journal.append(event, open=True))[0].global_seq
        await store.reactions.register(Reaction(reaction_id="rule", bootstrap_from_head=True))
        await catch_up(Matcher(store))


async def died(url: str) -> tuple[list[int], int]:
    async with opened(url) as (store, journal):
        dead = [task.source_global_seq for task in await tasks(store, status=TaskStatus.DLQ)]
        return dead, len([entry async for entry in journal.stream(subject="/tape/task/dead/**", follow=False)])
    raise AssertionError("a store swallows nothing")


def test_the_command_says_what_it_did_and_a_dry_run_does_nothing(
    url: str, log: Log, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    anyio.run(begin, url, log)
    monkeypatch.setenv("TAPE_DATA", str(log.table.parent))
    asked = ["reaction", "backfill", "rule", "--store", url, "--lake", str(log.table.parent), "--json", "--from", "5"]

    codes = [run([*asked, "--dry-run"]), run(asked), run([*asked, "--to", "15"])]

    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert codes == [0, 0, 0] and [(each["matches"], each["made"]) for each in told] == [(15, 0), (15, 15), (10, 0)]
    assert [(each["from"], each["to"]) for each in told] == [(5, 21), (5, 21), (5, 15)]


def test_what_was_said_of_a_reaction_is_read_in_the_lake_that_is_named(
    lasting_url: str, log: Log, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    anyio.run(begin_and_archive, lasting_url, log)
    monkeypatch.setenv("TAPE_DATA", str(tmp_path / "elsewhere"))
    named = ["--store", lasting_url, "--lake", str(log.table.parent), "--json"]

    codes = [
        run(["reaction", "backfill", "rule", *named, "--dry-run"]),
        run(["reaction", "explain", "rule", "2", *named]),
    ]

    counted, told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert codes == [0, 0] and (counted["matches"], told["outcome"]) == (3, "task")


async def begin_and_archive(url: str, log: Log) -> None:
    async with opened(url) as (store, _):
        await store.reactions.register(reaction())
        await publish(store, 3)
        await catch_up(Matcher(store))
        await fill(store, log, url)
        await archive(store, log, LATER, ignore)


async def test_what_is_not_there_has_no_backfill(url: str) -> None:
    async with opened(url) as (store, journal):
        await store.reactions.register(reaction("gone"))
        await store.reactions.remove("gone")
        await store.reactions.register(reaction())

        for name in ("nobody", "gone"):
            with pytest.raises(NotFound, match=f"no reaction '{name}'"):
                await planned(store, journal, name)
        with pytest.raises(UsageError, match="ends after it begins"):
            await planned(store, journal, "rule", after=10)


def test_a_step_is_as_long_as_is_said(spark: SparkSession, url: str, log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backfill, "STEP", 6)
    anyio.run(begin, url, log)

    count, made = filled(spark, url, log.table.parent, "rule")

    assert count == 20 and made == {("rule", place) for place in range(1, 21)}

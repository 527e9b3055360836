"""A backfill makes the tasks of the live matcher for a long random history, even if it is killed."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import NamedTuple

import anyio
import psutil
import pytest
from pyspark.sql import SparkSession

from tape.core.event import Event
from tape.core.ports import Store
from tape.lake.archive import archive
from tape.lake.log import DeltaLog
from tape.matcher.matcher import Matcher
from tests.conftest import Scale
from tests.contract.events import append
from tests.contract.reactions import catch_up, reaction
from tests.deadlines import DEADLINE_S
from tests.lake.backfills import Made, delete_tasks, filled, tasks_in
from tests.lake.expressions import RandomPredicates
from tests.lake.local_lake import fill, opened
from tests.lake.test_archive import LATER, ignore

ENTRIES = 8_000
ROUNDS = 20
AT_ONCE = 500
TRIES = 10
PATTERNS = ["/tape/event/*/r-1", "/tape/event/**", "/tape/event/tick/**", "/tape/reaction/**", "/tape/value/**"]


class Place(NamedTuple):
    """A journal with its lake, its reactions, and the tasks of the live matcher."""

    folder: Path
    names: list[str]
    made: Made

    @property
    def url(self) -> str:
        return f"sqlite:///{self.folder}/journal.db"

    @property
    def lake(self) -> Path:
        return self.folder / "lake"

    def made_of(self, name: str) -> Made:
        return {each for each in self.made if each[0] == name}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, scale: Scale) -> Place:
    folder, names = tmp_path_factory.mktemp("backfill"), [f"rule{number}" for number in range(3)]
    begun = Place(folder, names, set())
    return begun._replace(made=anyio.run(live, begun, scale(ENTRIES)))


@dataclass
class World:
    """Reactions that are registered, changed, paused, resumed and removed while a matcher runs now and then."""

    store: Store
    names: list[str]
    seed: int = 14

    def __post_init__(self) -> None:
        self._random, self._rules, self._entries = (
            Random(self.seed),
            RandomPredicates(self.seed),
            RandomPredicates(self.seed),
        )

    async def publish(self, count: int) -> None:
        events = list(self._events(count))
        for begin in range(0, len(events), AT_ONCE):
            await append(self.store, *events[begin : begin + AT_ONCE])

    def _events(self, count: int) -> Iterator[Event]:
        for entry in self._entries.entries(count):
            if self._entries.random.random() < 0.05:
                yield Event(
                    run_id="r-3", kind="value", type="set", subject=f"/tape/value/set/ns/{entry.seq}",
                    payload={**self._entries.payload(), "prev_value_json": self._entries.pick([None, "1", '"a"', "a"])},
                )  # fmt: skip
            elif entry.payload_json is None:
                yield Event(run_id="raw", payload=entry.payload, content_type="application/octet-stream")
            else:
                yield Event(run_id=entry.run_id, type=entry.type, payload=entry.payload, subject=entry.subject)

    async def change(self) -> None:
        doings = [self.define, self._remove, self._halt, self._halt, self._match]
        await self._random.choice(doings)(self._random.choice(self.names))

    async def define(self, name: str) -> None:
        where = self._random.choice(["", self._rules.predicate(), self._rules.predicate()])
        await self.store.reactions.register(reaction(name, self._random.choice(PATTERNS), predicate_cel=where))

    async def resume(self, name: str) -> None:
        await self.store.reactions.resume(name)

    async def _halt(self, name: str) -> None:
        """Pauses or resumes a reaction, unless it is removed."""
        record = await self.store.reactions.find(name)
        if record is None or record.is_removed:
            return
        if self._random.random() < 0.6:
            await self.store.reactions.pause(name, "maintenance")
        else:
            await self.resume(name)

    async def _remove(self, name: str) -> None:
        await self.store.reactions.remove(name)

    async def _match(self, _: str) -> None:
        await catch_up(Matcher(self.store))


async def live(place: Place, count: int) -> Made:
    """The older part of the history is in the lake only, and the rest in the journal."""
    log = DeltaLog(place.lake / "journal")
    async with opened(place.url) as (store, _):
        world = World(store, place.names)
        for name in place.names:
            await world.define(name)
        for number in range(ROUNDS):
            await world.publish(count // ROUNDS)
            await world.change()
            if number == 2 * ROUNDS // 3:
                await fill(store, log, place.url, step=count // 4)
        for name in place.names:
            await world.define(name)
            await world.resume(name)
        await catch_up(Matcher(store))
        await archive(store, log, LATER, ignore)
        return await tasks_in(store)


def test_a_backfill_makes_what_the_live_matcher_has_made(spark: SparkSession, place: Place, scale: Scale) -> None:
    anyio.run(begin_again, place.url)

    count, made = filled(spark, place.url, place.lake, *place.names)

    assert made == place.made and count == len(made)
    assert min(Counter(name for name, *_ in made).values()) > scale(ENTRIES) / 40
    assert set(anyio.run(happened, place)) == {"changed", "paused", "registered", "removed"}


def test_a_killed_backfill_that_runs_again_makes_the_same_tasks(spark: SparkSession, place: Place) -> None:
    name = max(place.names, key=lambda name: len(place.made_of(name)))
    wanted = place.made_of(name)

    left = next(caught for _ in range(TRIES) if (caught := killed_midway(place, name, len(wanted) // 4)) < len(wanted))
    count, made = filled(spark, place.url, place.lake, name)
    again, _ = filled(spark, place.url, place.lake, name)

    assert len(wanted) // 4 <= left < len(wanted) and count == len(wanted) - left
    assert (made, again) == (wanted, 0)


def killed_midway(place: Place, name: str, least: int) -> int:
    """How many tasks a command had made when it and its children were killed; it may have finished before."""
    anyio.run(begin_again, place.url)
    arguments = ["reaction", "backfill", name, "--store", place.url, "--lake", str(place.lake)]
    command = [sys.executable, "-m", "tape.cli.main", *arguments]
    environment = {**os.environ, "TAPE_DATA": str(place.folder), "TAPE_SPARK_MASTER": "local[1]"}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        anyio.run(until_made, place.url, least)
        end(process)
    finally:
        process.kill()
        process.wait()
    return anyio.run(until_made, place.url, least)


def end(process: subprocess.Popen[bytes]) -> None:
    """Kills a process and its children, unless they have exited."""
    with suppress(psutil.NoSuchProcess):
        started = psutil.Process(process.pid).children(recursive=True)
        process.kill()
        for each in started:
            each.kill()


async def until_made(url: str, least: int) -> int:
    async with opened(url) as (store, _):
        with anyio.fail_after(DEADLINE_S):
            while (made := await count(store)) < least:  # noqa: ASYNC110 - another process makes them
                await anyio.sleep(0.002 if made else 0.1)  # Spark starts for seconds, then makes all within one
        return made
    raise AssertionError("unreachable")


async def count(store: Store) -> int:
    async with store.transaction() as tx:
        ((made,),) = await tx.fetch("SELECT count(*) FROM tape_tasks", {})
        return int(made)
    raise AssertionError("unreachable")


async def begin_again(url: str) -> None:
    async with opened(url) as (store, _):
        await delete_tasks(store)


async def happened(place: Place) -> list[str]:
    """The types of all registration entries."""
    async with opened(place.url, DeltaLog(place.lake / "journal")) as (_, journal):
        return [entry.type async for entry in journal.stream(subject="/tape/reaction/**", follow=False)]
    raise AssertionError("unreachable")

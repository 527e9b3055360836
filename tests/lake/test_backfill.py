"""A backfill makes the tasks that a matcher would have made from the beginning, however often it runs."""

import json
from pathlib import Path

import anyio
import pytest
from pyspark.sql import SparkSession

from tape.cli import output
from tape.cli.main import run
from tape.core.errors import NotFound, UsageError
from tape.core.event import Event
from tape.core.reaction import Reaction
from tape.core.registration import ActiveRange
from tape.core.task import TaskStatus
from tape.lake.archive import archive
from tape.lake.log import DeltaLog
from tape.lake.search import backfill
from tape.lake.search.backfill import BackfillPlan, plan_backfill
from tape.matcher.matcher import Matcher
from tests.contract.reactions import catch_up, publish, reaction, tasks
from tests.lake.backfills import Made, delete_tasks, filled, places, tasks_in
from tests.lake.local_lake import fill, opened
from tests.lake.test_archive import LATER, ignore


async def begin(url: str, log: DeltaLog, **options: object) -> None:
    """Twenty entries, the older half in the lake only, and a reaction registered after them."""
    async with opened(url) as (store, _):
        await publish(store, 10)
        await fill(store, log, url)
        await archive(store, log, LATER, ignore)
        await publish(store, 10, "/a/c")
        await store.reactions.register(reaction(bootstrap_from_head=True, **options))  # type: ignore[arg-type]
        await catch_up(Matcher(store))


def test_a_reaction_that_began_at_the_head_gets_the_history_before_it(
    spark: SparkSession, durable_url: str, log: DeltaLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backfill, "STEP", 6)
    anyio.run(begin, durable_url, log)

    count, made = filled(spark, durable_url, log.table.parent, "rule")

    assert count == 20 and places(made) == {("rule", place) for place in range(1, 21)}


def test_a_debounced_reaction_gets_a_task_for_the_newest_entry_of_a_subject(
    spark: SparkSession, durable_url: str, log: DeltaLog
) -> None:
    anyio.run(lambda: begin(durable_url, log, debounce_ms=1_000))

    first, made = filled(spark, durable_url, log.table.parent, "rule")
    again, _ = filled(spark, durable_url, log.table.parent, "rule")

    assert places(made) == {("rule", 10), ("rule", 20)} and (first, again) == (2, 0)
    assert anyio.run(coalesced, durable_url) == [9, 9]


async def coalesced(url: str) -> list[int]:
    async with opened(url) as (store, _):
        return [task.coalesced for task in await tasks(store)]
    raise AssertionError("unreachable")


def test_a_match_at_the_depth_limit_becomes_one_dead_task(spark: SparkSession, url: str, log: DeltaLog) -> None:
    anyio.run(chain, url, 18)

    counts = [filled(spark, url, log.table.parent, "rule")[0] for _ in range(2)]

    dead, printed = anyio.run(died, url)
    assert counts == [17, 0] and (dead, printed) == ([17], 1)


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
    raise AssertionError("unreachable")


def test_the_command_prints_progress_and_counts_and_a_dry_run_makes_nothing(
    url: str, log: DeltaLog, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    anyio.run(begin, url, log)
    monkeypatch.setenv("TAPE_DATA", str(log.table.parent))
    monkeypatch.setattr(output, "is_terminal", lambda _: True)
    asked = ["reaction", "backfill", "rule", "--store", url, "--lake", str(log.table.parent), "--json", "--from", "5"]

    codes = [run([*asked, "--dry-run"]), run(asked), run([*asked, "--to", "15"])]

    printed = capsys.readouterr()
    lines = [json.loads(line) for line in printed.out.splitlines()]
    assert "0 of 16 entries, 0 matches" in printed.err and "16 of 16 entries, 15 matches, 15 made" in printed.err
    assert codes == [0, 0, 0] and [(each["matches"], each["made"]) for each in lines] == [(15, 0), (15, 15), (10, 0)]
    assert [(each["from"], each["to"]) for each in lines] == [(5, 21), (5, 21), (5, 15)]


def test_registrations_are_read_from_the_named_lake(
    durable_url: str, log: DeltaLog, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    anyio.run(begin_and_archive, durable_url, log)
    monkeypatch.setenv("TAPE_DATA", str(tmp_path / "elsewhere"))
    named = ["--store", durable_url, "--lake", str(log.table.parent), "--json"]

    codes = [
        run(["reaction", "backfill", "rule", *named, "--dry-run"]),
        run(["reaction", "explain", "rule", "2", *named]),
    ]

    counted, lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert codes == [0, 0] and (counted["matches"], lines["outcome"]) == (3, "task")


async def begin_and_archive(url: str, log: DeltaLog) -> None:
    async with opened(url) as (store, _):
        await store.reactions.register(reaction())
        await publish(store, 3)
        await catch_up(Matcher(store))
        await fill(store, log, url)
        await archive(store, log, LATER, ignore)


async def test_an_unknown_or_removed_reaction_has_no_backfill(url: str) -> None:
    async with opened(url) as (store, journal):
        await store.reactions.register(reaction("gone"))
        await store.reactions.remove("gone")
        await store.reactions.register(reaction())

        for name in ("nobody", "gone"):
            with pytest.raises(NotFound, match=f"no reaction '{name}'"):
                await plan_backfill(store, journal, name)
        with pytest.raises(UsageError, match="ends after it begins"):
            await plan_backfill(store, journal, "rule", after=10)


def test_a_step_has_few_definitions_however_often_a_reaction_was_changed() -> None:
    spans = tuple(ActiveRange(place, place + 10, reaction()) for place in range(0, 1_000, 10))

    steps = list(BackfillPlan(reaction_id="rule", after=5, through=995, spans=spans).steps())

    met = [sum(span.above < end and begin < span.through for span in spans) for begin, end in steps]
    assert [place for begin, end in steps for place in range(begin, end)] == list(range(5, 995))
    assert max(met) == backfill.SPANS < len(spans)


def test_a_reaction_changed_often_gets_the_matches_of_each_definition(
    spark: SparkSession, url: str, log: DeltaLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backfill, "SPANS", 2)
    made = anyio.run(change_often, url, 5)

    assert filled(spark, url, log.table.parent, "rule") == (len(made), made)


async def change_often(url: str, times: int) -> Made:
    """The tasks that the matcher made for a reaction changed several times; then all are deleted."""
    async with opened(url) as (store, _):
        for number in range(times):
            await store.reactions.register(reaction(predicate_cel=f"payload.n > {number}"))
            await publish(store, 5)
        await catch_up(Matcher(store))
        made = await tasks_in(store)
        await delete_tasks(store)
        return made
    raise AssertionError("unreachable")

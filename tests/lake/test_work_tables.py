"""Reactions in the lake from the journal, and outcomes of tasks from their rows."""

from pathlib import Path

import anyio
from pyspark.sql import SparkSession

from tape.cli.main import run
from tape.core.event import Event
from tape.core.ids import GlobalSeq
from tape.core.reaction import Reaction
from tape.core.registration import Verb, defined, paused, removed
from tape.core.task import Died, Outcomes, TaskId, task_event
from tape.lake.log import DeltaLog
from tape.lake.reports.task_outcomes import outcomes_of, write_outcomes
from tape.lake.work_tables import reactions
from tests.contract.reactions import claim, match, publish, reaction, settle
from tests.lake.frames import assert_rows, journal_of
from tests.lake.local_lake import fill, opened

RULE = Reaction(reaction_id="rule", subject_pattern="/a/**", predicate_cel="payload.n > 1")
OTHER = Reaction(reaction_id="other", subject_pattern="/b/**")
DEAD = task_event("dead", "rule", TaskId("t.7"), 7, {"attempts": 5, "error": "boom"})
REPLAYED = task_event("replayed", "rule", TaskId("t.7"), 7, {"attempts": 5, "error": "boom"})


def test_a_reaction_has_its_newest_definition_status_and_counts_of_tasks(spark: SparkSession) -> None:
    changed = Reaction(reaction_id="rule", subject_pattern="/a/*")
    events = [defined(Verb.REGISTERED, RULE), DEAD, REPLAYED, DEAD, paused("rule", "maintenance")]

    table = reactions(journal_of(spark, *events, defined(Verb.CHANGED, changed, "maintenance")))

    assert_rows(
        table,
        ("rule", "/a/*", "", 2, "paused", 2, 1, 2, 1, 0, 5_000),
        columns="reaction_id subject_pattern predicate_cel handler_kind status n_definitions n_pauses n_dead "
        "n_replayed first_ts_ms last_ts_ms",
    )


def test_one_that_was_resumed_matches_and_one_that_was_removed_does_not(spark: SparkSession) -> None:
    events = [defined(Verb.REGISTERED, RULE), paused("rule", "x"), defined(Verb.CHANGED, RULE)]

    table = reactions(journal_of(spark, *events, defined(Verb.REGISTERED, OTHER), removed("other", 3)))

    assert_rows(table, ("rule", "matching", 0), ("other", "removed", 3), columns="reaction_id status n_dead")


def test_a_journal_without_reactions_has_none(spark: SparkSession) -> None:
    assert_rows(reactions(journal_of(spark, Event(run_id="r", payload=1))))


def test_a_snapshot_of_outcomes_takes_the_place_of_the_last_one(tmp_path: Path) -> None:
    done, pending = Outcomes("rule", "done", 3, 4, 0, 20, 60, 1), Outcomes("rule", "pending", 1, 0, 2, 0, 0, 5)
    before = outcomes_of(tmp_path)
    write_outcomes(tmp_path, [pending], GlobalSeq(4))

    write_outcomes(tmp_path, [done, pending], GlobalSeq(9))

    assert before == [] and outcomes_of(tmp_path) == [done._asdict(), pending._asdict()]


def test_the_report_has_the_outcomes_of_tasks(spark: SparkSession, url: str, log: DeltaLog) -> None:
    anyio.run(work, url, log)

    code = run(["lake", "report", "--store", url, "--lake", str(log.table.parent), "--json"])

    page = (log.table.parent / "report.html").read_text()
    found = {(row["reaction_id"], row["status"]): row["n_tasks"] for row in outcomes_of(log.table.parent)}
    assert code == 0 and found == {("rule", "done"): 1, ("rule", "dlq"): 1, ("rule", "pending"): 1}
    assert "Task outcomes" in page and "Reactions" in page and "/a/**" in page


async def work(url: str, log: DeltaLog) -> None:
    """Three tasks: one done, one dead, one pending."""
    async with opened(url) as (store, _):
        await store.reactions.register(reaction())
        await publish(store, 3)
        await match(store)
        done, dead = await claim(store, limit=2)
        await settle(store, done)
        await settle(store, dead, Died("no such account"))
        await fill(store, log, url)

"""Dry runs and backfills follow the matcher's rule for entries about tasks and reactions."""

from pathlib import Path

import anyio
import pytest
from pyspark.sql import SparkSession

from tape.core.lifecycle import reacts
from tape.core.subject import Pattern
from tape.lake import dry_run
from tests.contract.reactions import match, publish, reaction
from tests.contract.test_lifecycle_matches import die
from tests.lake.backfills import delete_tasks, filled, tasks_in
from tests.lake.journals import read
from tests.lake.local_lake import opened

PATTERNS = ["/**", "/tape/**", "/tape/*/**", "/*/task/**", "/tape/task/**", "/tape/reaction/**", "/tape/task/dead/**"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A journal with dead tasks, and dead tasks that reacted to those."""
    folder = tmp_path_factory.mktemp("lifecycle")
    anyio.run(_fill, _url(folder))
    return folder


async def _fill(url: str) -> None:
    async with opened(url) as (store, _):
        for name, pattern in enumerate(PATTERNS):
            await store.reactions.register(reaction(f"rule{name}", pattern))
        await store.reactions.register(reaction())
        await publish(store, 2)
        await publish(store, 1, "/tape/event/x")
        await publish(store, 1, "/my/task/x")
        await match(store)
        for _ in range(3):
            await die(store)


def _url(folder: Path) -> str:
    return f"sqlite:///{folder}/journal.db"


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_dry_run_matches_the_lifecycle_entries_that_the_matcher_does(
    spark: SparkSession, folder: Path, pattern: str
) -> None:
    live = [entry.global_seq for entry in read(_url(folder)) if reacts(Pattern(pattern), entry)]

    found = dry_run(spark, _url(folder), folder / "lake", pattern).collect()

    assert sorted(row["global_seq"] for row in found) == live and live


def test_a_backfill_makes_the_tasks_that_the_matcher_made(spark: SparkSession, folder: Path) -> None:
    made = anyio.run(_forgotten, _url(folder))

    names = [f"rule{name}" for name in range(len(PATTERNS))]
    _, again = filled(spark, _url(folder), folder / "lake", *names, "rule")

    assert again == made


async def _forgotten(url: str) -> object:
    async with opened(url) as (store, _):
        made = await tasks_in(store)
        await delete_tasks(store)
        return made

"""Dry runs and backfills that a server starts, on Spark in a process of its own."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import anyio
import httpx
import psutil
import pytest
from pyspark.sql import SparkSession

from tape.cli.main import run
from tape.core.reaction import Reaction
from tape.lake.log import DeltaLog
from tape.lake.search.backfill import BackfillPlan, find_matches, plan_backfill
from tape.lake.search.backfill_dry_run import dry_run_backfill
from tests.deadlines import DEADLINE_S
from tests.lake.local_lake import fill, opened, publish
from tests.server.server import TapeServer

LATE = Reaction(reaction_id="late", subject_pattern="/n/**", predicate_cel="payload.n >= 100", bootstrap_from_head=True)
ERRS = Reaction(
    reaction_id="errs", subject_pattern="/n/**", predicate_cel="payload.nothing > 1", bootstrap_from_head=True
)
EVENTS = 300
DAY_MS = 86_400_000
SPARK_S = 4 * DEADLINE_S


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, spark_url: str) -> Iterator[TapeServer]:
    """A server over a history that is half in the lake, with reactions registered after all of it."""
    folder = tmp_path_factory.mktemp("searches")
    url = f"sqlite:///{folder}/tape.db"
    anyio.run(partial(filled, url, folder / "lake"))
    with TapeServer(folder, url, environment={"TAPE_SPARK_MASTER": spark_url}) as server:
        yield server


async def filled(url: str, lake: Path) -> None:
    async with opened(url) as (store, journal):
        await publish(journal, EVENTS // 2)
        await fill(store, DeltaLog(lake / "journal"), url)
        await publish(journal, EVENTS // 2)
        for rule in (LATE, ERRS):
            await store.reactions.register(rule)


@pytest.fixture
def http(server: TapeServer) -> Iterator[httpx.Client]:
    with server.client() as http:
        yield http


def ended(http: httpx.Client, reaction_id: str, kind: str) -> dict[str, Any]:
    """The search, once it has ended."""
    give_up = monotonic() + SPARK_S
    while (search := http.get(f"/reactions/{reaction_id}/searches").json()[kind])["state"] == "running":
        assert monotonic() < give_up, search
        sleep(0.1)
    return dict(search)


def children(server: TapeServer) -> list[psutil.Process]:
    return psutil.Process(server.pid).children(recursive=True)


def test_a_dry_run_counts_by_day_just_what_a_backfill_makes(spark: SparkSession, server: TapeServer) -> None:
    url, lake = f"sqlite:///{server.folder}/tape.db", server.folder / "lake"
    plan = anyio.run(plan_of, url, lake, "late")

    *_, dry = dry_run_backfill(spark, url, lake, plan)
    places = [hit.entry.global_seq for some in find_matches(spark, url, lake, plan) for hit in some.matches]

    assert (dry.searched, list(dry.errors)) == (plan.through, [])
    assert dry.matches == sum(day.matches for day in dry.days) == len(places) > 0
    assert [sample.global_seq for sample in dry.samples] == sorted(places, reverse=True)[:5]
    assert all(day.day_ms % DAY_MS == 0 for day in dry.days)


async def plan_of(url: str, lake: Path, reaction_id: str) -> BackfillPlan:
    async with opened(url, DeltaLog(lake / "journal")) as (store, journal):
        return await plan_backfill(store, journal, reaction_id)


def test_a_dry_run_has_the_errors_of_the_predicate_as_the_command_has(
    spark: SparkSession, server: TapeServer, http: httpx.Client, capsys: pytest.CaptureFixture[str]
) -> None:
    http.post("/reactions/errs/dry-run", json={"after": 100, "through": 250}).raise_for_status()
    stored = ["--store", f"sqlite:///{server.folder}/tape.db", "--lake", str(server.folder / "lake"), "--json"]
    span = ["--subject", ERRS.subject_pattern, "--where", ERRS.predicate_cel, "--from", "100", "--to", "250"]

    dry = ended(http, "errs", "dry_run")
    code = run(["reaction", "dry-run", *span, *stored])

    printed = json.loads(capsys.readouterr().out)
    assert (code, dry["state"], dry["matches"], dry["searched"]) == (0, "done", 0, 150)
    assert (printed["matches"], printed["cost"]["entries"]) == (0, 150)
    assert printed["errors"] == dry["errors"]
    assert dry["errors"][0]["entries"] == 150 and "nothing" in dry["errors"][0]["error"]


def test_there_is_one_search_at_a_time_and_it_can_be_cancelled(server: TapeServer, http: httpx.Client) -> None:
    http.post("/reactions/late/dry-run").raise_for_status()

    second = http.post("/reactions/errs/backfill")
    other = http.delete("/reactions/errs/searches")
    cancelled = http.delete("/reactions/late/searches")

    assert (second.status_code, second.json()["code"]) == (429, "limit_reached")
    assert "a dry run of 'late' is under way" in second.json()["detail"]
    assert (other.status_code, cancelled.json()["state"]) == (409, "cancelled")
    assert children(server) == []
    assert http.delete("/reactions/late/searches").status_code == 409

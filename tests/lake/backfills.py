"""Runs backfills and compares the tasks that they make."""

from pathlib import Path
from typing import TypeAlias
from zlib import crc32

import anyio
from pyspark.sql import SparkSession

from tape.core.ports import Store
from tape.lake.log import DeltaLog
from tape.lake.search.backfill import BackfillPlan, find_matches, plan_backfill
from tests.lake.local_lake import opened

# The columns of a task without its times and its progress, which no backfill can reproduce.
TASK_COLUMNS = """
SELECT reaction_id, source_global_seq, task_id, shard_hash, source_run_id, source_seq, kind, type, subject,
       schema_version, ts_ms, payload_json, prev_value_json, trace_id, span_id
FROM tape_tasks
"""

Made: TypeAlias = set[tuple[str, int, int]]


async def tasks_in(store: Store) -> Made:
    """All tasks: their reaction, their entry, and a checksum of their columns."""
    async with store.transaction() as tx:
        rows = await tx.fetch(TASK_COLUMNS, {})
        return {(row[0], row[1], crc32(repr(row[2:]).encode())) for row in rows}
    raise AssertionError("unreachable")


async def delete_tasks(store: Store) -> None:
    async with store.transaction() as tx:
        await tx.fetch("DELETE FROM tape_tasks", {})


def places(made: Made) -> set[tuple[str, int]]:
    return {(reaction_id, place) for reaction_id, place, _ in made}


def filled(spark: SparkSession, url: str, lake: Path, *names: str) -> tuple[int, Made]:
    """How many tasks the backfills of some reactions make, and all tasks after them."""

    async def plans() -> list[BackfillPlan]:
        async with opened(url, DeltaLog(lake / "journal")) as (store, journal):
            return [await plan_backfill(store, journal, name) for name in names]

    async def write(plan: BackfillPlan) -> int:
        async with opened(url) as (store, _):
            some = [each.matches for each in find_matches(spark, url, lake, plan) if each.matches]
            return sum([await store.tasks.make(hits) for hits in some])

    async def look() -> Made:
        async with opened(url) as (store, _):
            return await tasks_in(store)

    return sum(anyio.run(write, plan) for plan in anyio.run(plans)), anyio.run(look)

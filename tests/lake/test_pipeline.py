"""Spark copies the journal into the lake: each position once, after kills too, by any count."""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path

import anyio
import duckdb
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tape.core.errors import Unavailable
from tape.core.event import Event
from tape.core.ids import GlobalSeq
from tape.lake import dry_run
from tape.lake.log import DeltaLog
from tape.lake.pipeline import Write, spark_writer, sync
from tape.lake.verify import faults, versions
from tests.lake.local_lake import opened, publish, read_all
from tests.lake.test_odd_paths import EVERYTHING, answers, publish_only

COUNTS = ("count(*)", "count(distinct global_seq)", "max(global_seq)")


@pytest.fixture
def write(spark: SparkSession, url: str) -> Iterator[Write]:
    with writing(spark, url) as write:
        yield write


def writing(spark: SparkSession, url: str) -> AbstractContextManager[Write]:
    return spark_writer(lambda: nullcontext(spark), url)


async def test_p21_spark_writes_every_entry_byte_for_byte(spark: SparkSession, log: DeltaLog, durable_url: str) -> None:
    odd: list[object] = [2**53 + 1, -(2**63), -0.0, 1e308, "\u2028\U0010ffff☃\\", {"": {"\\": '"'}}, None]
    async with opened(durable_url, log) as (store, journal):
        published = await journal.append([Event(run_id="odd", payload=each) for each in odd], open=True)  # type: ignore[arg-type]
        published += await journal.append(Event(run_id="b", payload=b"\0\xff", content_type="image/png"), open=True)
        published += await publish(journal, 2_500)
        with writing(spark, durable_url) as write:
            steps = [done.through async for done in sync(store.journal, log, write, 1_000)]
        await store.retention.trim(GlobalSeq(len(published)))

        assert await read_all(journal) == published
    assert steps == [1_000, 2_000, 2_508] and list(faults(log, is_deep=True)) == []


async def test_deltalake_duckdb_and_spark_count_the_same(
    spark: SparkSession, write: Write, log: DeltaLog, url: str
) -> None:
    async with opened(url) as (store, journal):
        await publish(journal, 1_500)
        async for _ in sync(store.journal, log, write, 1_000):
            pass
    table = DeltaTable(log.table)

    by_duckdb = duckdb.connect().read_parquet(table.file_uris()).aggregate(", ".join(COUNTS)).fetchall()
    by_spark = spark.read.parquet(*table.file_uris()).selectExpr(*COUNTS).collect()

    assert by_duckdb == [tuple(row) for row in by_spark] == [(1_500,) * 3]
    assert table.to_pyarrow_dataset().count_rows() == table.transaction_version("tape") == 1_500


async def test_a_step_on_a_full_disk_fails_with_the_reason_and_succeeds_later(
    write: Write, url: str, small_disk: Path
) -> None:
    log = DeltaLog(small_disk / "journal")
    ballast = small_disk / "ballast"
    async with opened(url) as (store, journal):
        await publish(journal, 100)
        assert [done.through async for done in sync(store.journal, log, write)] == [100]
        ballast.write_bytes(bytes(3 << 20))
        await journal.append([Event(run_id="r", payload=os.urandom(20_000).hex()) for _ in range(100)], open=True)

        with pytest.raises(Unavailable, match="No space left"):
            async for _ in sync(store.journal, log, write):
                pass
        refused = [(number, seen.through) for number, seen in versions(log)]
        ballast.unlink()
        went_on = [done.through async for done in sync(store.journal, log, write)]

    assert refused == [(0, 0), (1, 100)] and went_on == [200] and list(faults(log, is_deep=True)) == []


def test_spark_writes_and_reads_a_lake_in_a_folder_of_any_name(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url, lake = f"sqlite:///{tmp_path}/journal.db", tmp_path / "lakes" / EVERYTHING / "lake"
    where = ("--lake", str(lake), "--store", url)
    anyio.run(partial(publish_only, url, 30))

    synced = answers(capsys, "lake", "sync", "--step", "20", *where)
    made = answers(capsys, "lake", "tables", "runs", *where)

    assert [step["through"] for step in synced] == [20, 30] and [table["rows"] for table in made] == [3]
    assert dry_run(spark, url, lake, "/n/**").count() == 30
    assert [path.name for path in (tmp_path / "lakes").iterdir()] == [EVERYTHING]

"""The journal as a Spark sink: each batch is appended once, as a whole or not at all."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from tape.compose import open_store
from tests.deadlines import DEADLINE_S
from tests.lake.journals import fill, hostile, numbered, plain, read
from tests.lake.stream_copy import copy_stream

COPIED = ("run_id", "type", "subject", "payload_json")


def test_a_sink_appends_what_it_is_given(spark: SparkSession, durable_url: str, tmp_path: Path) -> None:
    origin = f"sqlite:///{tmp_path}/origin.db"
    fill(origin, [event for event in hostile(50, seed=3) if event.run_id == "json"])

    copy_stream(spark, origin, durable_url, tmp_path, rows=20)

    assert plain(read(durable_url), *COPIED) == plain(read(origin), *COPIED)


def test_a_batch_that_comes_again_appends_nothing(spark: SparkSession, durable_url: str, tmp_path: Path) -> None:
    origin = f"sqlite:///{tmp_path}/origin.db"
    fill(origin, numbered(50))
    copy_stream(spark, origin, durable_url, tmp_path, rows=20)
    forget_newest(tmp_path / "checkpoint" / "commits")

    copy_stream(spark, origin, durable_url, tmp_path, rows=20)

    assert plain(read(durable_url), *COPIED) == plain(read(origin), *COPIED)


def forget_newest(commits: Path) -> None:
    """Leaves a checkpoint as a kill between the append and the commit does."""
    newest = max(int(path.name) for path in commits.iterdir() if path.name.isdecimal())
    (commits / str(newest)).unlink()
    (commits / f".{newest}.crc").unlink()


def test_a_query_that_starts_over_under_the_same_name_is_refused(spark: SparkSession, url: str, tmp_path: Path) -> None:
    origin = f"sqlite:///{tmp_path}/origin.db"
    fill(origin, numbered(50))
    copy_stream(spark, origin, url, tmp_path, rows=20)

    with pytest.raises(PySparkException, match="has appended batch 2 already, and batch 0 is not that one again"):
        copy_stream(spark, origin, url, tmp_path / "another", rows=20)

    assert len(read(url)) == 50


def test_a_frame_is_written_once_however_often(spark: SparkSession, durable_url: str, tmp_path: Path) -> None:
    frame = spark.createDataFrame([("r", '{"n": 1}'), ("r", '"two"')], "run_id STRING, payload_json STRING")

    for _ in range(2):
        write(frame, durable_url)

    assert [entry.payload for entry in read(durable_url)] == [{"n": 1}, "two"]


def write(frame: DataFrame, store: str, mode: str = "append") -> None:
    frame.write.format("tape").mode(mode).options(store=store, sinkId="once").save()


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ("'r' AS run_id", "the column payload_json is missing"),
        ("'r' AS run_id, '1' AS payload_json, 1 AS crc", "an event has no column 'crc'"),
        ("'r' AS run_id, '{' AS payload_json", "row 1 of the batch is no event"),
        ("'tape.mine' AS run_id, '1' AS payload_json", "row 1 of the batch is no event: run ids beginning 'tape.'"),
        ("'r' AS run_id, '1' AS payload_json, '/tape/x' AS subject", "subject '/tape/x' is reserved"),
    ],
)
def test_rows_that_are_no_events_append_nothing(spark: SparkSession, url: str, columns: str, reason: str) -> None:
    fill(url, [])

    with pytest.raises(PySparkException, match=reason):
        write(spark.sql(f"SELECT {columns}"), url)

    assert read(url) == []


def test_a_journal_is_never_overwritten(spark: SparkSession, url: str) -> None:
    with pytest.raises(PySparkException, match="a journal is only ever appended to"):
        write(spark.sql("SELECT 'r' AS run_id, '1' AS payload_json"), url, mode="overwrite")


def test_a_sink_without_a_name_is_refused(spark: SparkSession, url: str) -> None:
    frame = spark.sql("SELECT 'r' AS run_id, '1' AS payload_json")

    with pytest.raises(PySparkException, match="the option sinkId is missing"):
        frame.write.format("tape").mode("append").option("store", url).save()


def test_a_sink_killed_among_its_batches_has_each_row_once(spark: SparkSession, url: str, tmp_path: Path) -> None:
    origin = f"sqlite:///{tmp_path}/origin.db"
    fill(origin, numbered(400))
    fill(url, [])
    command = [sys.executable, "-m", "tests.lake.stream_copy", origin, url, str(tmp_path), "50"]
    process = subprocess.Popen(command, start_new_session=True)

    try:
        anyio.run(reached, url, 150)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    at_kill = len(read(url))
    copy_stream(spark, origin, url, tmp_path, rows=50)

    assert at_kill < 400
    assert plain(read(url), *COPIED) == plain(read(origin), *COPIED)


async def reached(url: str, position: int) -> None:
    """Waits until the journal has grown so far."""
    async with open_store(url) as store:
        with anyio.fail_after(DEADLINE_S):
            while (head := (await store.journal.bounds()).head) < position:
                await store.journal.wait(head)

"""The journal as a Spark source: the same rows, byte for byte, or a reason."""

import sqlite3
from functools import partial
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr

from tape.core.event import Event
from tape.lake import register
from tape.lake.partitions import BelowFloor, JournalPartition, PartitionReader
from tape.lake.session import open_session
from tape.lake.source import JournalStreamReader
from tape.lake.source_options import EARLIEST, SourceOptions
from tape.store.ranges import arrow_schema
from tests.conftest import Scale
from tests.lake.journals import delete, fill, hostile, numbered, plain, read, rows, source, trim
from tests.lake.test_session import count

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
FILTERS = [
    "global_seq > 10 AND global_seq <= 40",
    "global_seq >= 20 AND global_seq < 21",
    "global_seq = 33",
    "global_seq > 1000000 OR global_seq = 3",
    "global_seq > 1000000",
    "run_id = 'run1'",
    "run_id IN ('run0', 'run2', 'nobody') AND kind = 'event'",
    "kind = 'run'",
    "subject LIKE '/n3/%'",
    "subject LIKE '/n3/%' AND subject LIKE '/n4/%'",
    "subject = '/n1/6/x' AND type = 'b'",
    "subject IN ('/n1/1/x', '/n2/2/x') AND run_id = 'run1'",
    "subject LIKE '%3/x'",
    "run_id = 'it''s \\\\ :after' OR seq = 1",
    "subject > '/n3' AND NOT run_id = 'run1'",
    "cause IS NULL AND payload_bytes IS NULL AND run_id IS NOT NULL AND global_seq < 9",
]


def test_a_batch_is_the_journal_byte_for_byte(spark: SparkSession, durable_url: str, scale: Scale) -> None:
    fill(durable_url, hostile(scale(200), seed=7))

    frame = source(spark, durable_url, rowsPerPartition=50)

    assert frame.rdd.getNumPartitions() > 1
    assert rows(frame) == plain(read(durable_url))


def test_an_empty_journal_has_no_rows(spark: SparkSession, url: str) -> None:
    fill(url, [])

    assert rows(source(spark, url)) == []


def test_only_what_an_entry_may_lack_can_be_null(spark: SparkSession, url: str) -> None:
    fill(url, numbered(1))

    fields = source(spark, url).schema.fields

    assert [field.name for field in fields if field.nullable] == ["cause", "payload_json", "payload_bytes"]


def test_a_schema_chooses_the_columns(spark: SparkSession, url: str) -> None:
    fill(url, numbered(30))

    narrow = spark.read.format("tape").schema("subject STRING, global_seq BIGINT").option("store", url).load()

    assert rows(narrow) == plain(read(url), "subject", "global_seq")


@pytest.mark.parametrize("schema", ["nobody STRING", "global_seq STRING", "payload_bytes STRING"])
def test_a_column_that_no_entry_has_is_refused(spark: SparkSession, url: str, schema: str) -> None:
    fill(url, numbered(1))

    with pytest.raises(PySparkException, match="an entry has no column"):
        spark.read.format("tape").schema(schema).option("store", url).load().collect()


def test_every_pushed_filter_finds_what_spark_finds_itself(spark: SparkSession, durable_url: str) -> None:
    fill(durable_url, numbered(70))
    judged = source(spark, durable_url).select("global_seq", *map(expr, FILTERS)).collect()

    frames = {condition: pushing(spark, durable_url, rowsPerPartition=25) for condition in FILTERS}
    found = {condition: positions(frame.where(condition)) for condition, frame in frames.items()}

    assert found == {
        condition: sorted(row[0] for row in judged if row[place]) for place, condition in enumerate(FILTERS, 1)
    }
    assert len(set(map(len, found.values()))) > 5


def test_a_session_without_pushdown_filters_by_itself_and_finds_the_same(
    spark: SparkSession, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(url, numbered(70))
    condition = "subject LIKE '/n3/%' AND run_id = 'run1' AND global_seq > 5"
    pushed = positions(pushing(spark, url).where(condition))

    spark.conf.set(PUSHDOWN, "false")
    unpushed = pushing(spark, url).where(condition)
    found = positions(unpushed)
    unpushed.explain()
    spark.conf.set(PUSHDOWN, "true")

    assert pushed == found != [] and "Filter (" in capsys.readouterr().out


def test_a_frame_is_whole_again_after_it_was_filtered(spark: SparkSession, url: str) -> None:
    fill(url, numbered(30))
    frame = source(spark, url)
    filtered = positions(frame.where("global_seq < 5"))

    both = frame.where("run_id = 'run1'").unionAll(frame.where("run_id = 'run2'"))

    assert (filtered, frame.count(), both.count()) == ([1, 2, 3, 4], 30, 20)


def pushing(spark: SparkSession, url: str, **options: object) -> DataFrame:
    return source(spark, url, pushdown=True, **options)


def positions(frame: DataFrame) -> list[int]:
    return sorted(row[0] for row in frame.select("global_seq").collect())


def test_spark_does_not_apply_a_pushed_filter_again(
    spark: SparkSession, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(url, numbered(1))

    pushing(spark, url).where(
        "subject LIKE '/n3/%' AND run_id = 'run1' AND global_seq > 5 AND kind = 'event'"
    ).explain()

    assert "Filter" not in capsys.readouterr().out.replace("RuntimeFilters", "")


def test_a_range_is_what_lies_above_one_position_and_up_to_another(spark: SparkSession, url: str) -> None:
    fill(url, numbered(30))

    found = rows(source(spark, url, fromGlobalSeq=10, toGlobalSeq=20).select("global_seq"))

    assert found == [(position,) for position in range(11, 21)]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"fromGlobalSeq": 31}, "no reader can have reached 31"),
        ({"toGlobalSeq": 31}, "the journal ends at 30, before 31"),
        ({"fromGlobalSeq": "-1"}, "fromGlobalSeq must be a whole number"),
        ({"rowsPerPartition": "0"}, "rowsPerPartition must be a whole number from 1 on"),
    ],
)
def test_a_range_that_does_not_exist_is_refused(
    spark: SparkSession, url: str, options: dict[str, object], reason: str
) -> None:
    fill(url, numbered(30))

    with pytest.raises(PySparkException, match=reason):
        source(spark, url, **options).collect()


def test_a_stream_may_begin_before_its_last_position_is_there(url: str) -> None:
    fill(url, numbered(3))

    stream = JournalStreamReader(SourceOptions(after=1, through=30), PartitionReader(url, arrow_schema()))

    assert stream.initialOffset()["global_seq"] == 1


@pytest.mark.parametrize("after", [EARLIEST, 0, 9])
def test_a_range_below_the_floor_is_refused_and_never_cut(durable_url: str, after: int) -> None:
    fill(durable_url, numbered(30))
    reading = PartitionReader(durable_url, arrow_schema())
    stream = JournalStreamReader(SourceOptions(after=after), reading)
    before, epoch = (reading.plan(after, None), stream.initialOffset()), reading.extent().epoch

    trim(durable_url, 10)

    assert before == (JournalPartition(max(after, 0), 30, epoch), {"global_seq": max(after, 0), "epoch": epoch})
    for refused in (partial(reading.plan, after, None), stream.initialOffset):
        with pytest.raises(BelowFloor, match=r"to 10 were archived .* use tape\.lake\.dry_run.* set fromGlobalSeq=10"):
            refused()
    assert reading.plan(10, None) == JournalPartition(10, 30, epoch)
    with pytest.raises(BelowFloor):
        list(reading.read(before[0]))


def test_a_gap_that_opens_after_planning_is_found_by_the_task(spark: SparkSession, url: str) -> None:
    fill(url, numbered(30))
    planned = source(spark, url).where("run_id = 'run1'")
    planned.collect()

    trim(url, 10)

    with pytest.raises(PySparkException, match="the journal begins at 11; 1 to 10 were archived or trimmed"):
        planned.collect()


def test_a_missing_entry_fails_a_task_even_if_its_filter_excludes_it(spark: SparkSession, url: str) -> None:
    fill(url, numbered(30))
    delete(url, 17)

    with pytest.raises(PySparkException, match="10 entries are above 10 and up to 20, but 9 were found"):
        pushing(spark, url, rowsPerPartition=10).where("subject LIKE '/nowhere/%'").collect()


@pytest.mark.parametrize(
    ("store", "reason"),
    [
        ("memory://", "memory:// has no lake: it keeps only the newest entries"),
        ("redis://localhost", "redis:// has no lake: it keeps only the newest entries"),
        ("mysql://localhost", "filled from sqlite:///file.db or postgresql://…, not from 'mysql'"),
        ("env:NOBODY_SET_THIS", "the variable 'NOBODY_SET_THIS', which is not set"),
        ("file:/nowhere/at/all", "a file that cannot be read"),
    ],
)
def test_a_store_that_forgets_is_refused_at_once(spark: SparkSession, store: str, reason: str) -> None:
    with pytest.raises(PySparkException, match=reason):
        source(spark, store)


def test_a_journal_that_is_not_there_is_not_made(spark: SparkSession, url: str) -> None:
    with pytest.raises(PySparkException, match="there is no journal at"):
        source(spark, url).collect()

    with pytest.raises(sqlite3.OperationalError):
        sqlite3.connect(f"file:{url.removeprefix('sqlite:///')}?mode=ro", uri=True).execute("SELECT 1")


def test_a_long_payload_is_a_row_like_any_other(spark: SparkSession, durable_url: str) -> None:
    fill(durable_url, [Event(run_id="long", payload="x" * 900_000) for _ in range(9)])

    assert rows(source(spark, durable_url)) == plain(read(durable_url))


def test_the_source_can_be_registered_with_a_session(spark: SparkSession, url: str) -> None:
    fill(url, numbered(3))

    register(spark)

    assert source(spark, url).count() == 3


def test_a_connect_server_serves_the_source(spark_url: str, url: str, tmp_path: Path) -> None:
    fill(url, numbered(90))

    ended = count(spark_url, tmp_path / "unused", url)

    assert (ended.stdout, ended.stderr) == ("30 18\n", "")


def test_a_session_that_is_there_is_shared_and_left_alone(spark: SparkSession, tmp_path: Path) -> None:
    with open_session("local[2]", tmp_path) as session:
        assert session is spark

    assert spark.range(3).count() == 3

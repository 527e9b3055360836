"""The journal as a Spark stream: every entry once, within limits, over any number of restarts."""

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tests.lake.journals import fill, numbered, plain, promote, read, rows, trim


class Stream:
    """A query from a journal into Parquet, which can be run again and again."""

    def __init__(self, spark: SparkSession, store: str, folder: Path, **options: object) -> None:
        self._spark = spark
        self._folder = folder
        self._options = {"store": store, **options}

    def start(self) -> StreamingQuery:
        loaded = self._spark.readStream.format("tape").options(**self._options).load()  # type: ignore[arg-type]
        target = loaded.writeStream.option("checkpointLocation", str(self._folder / "checkpoint"))
        return target.trigger(availableNow=True).start(str(self._folder / "out"), format="parquet")

    def run(self) -> list[int]:
        """How many rows each batch had."""
        query = self.start()
        query.awaitTermination()
        return [progress["numInputRows"] for progress in query.recentProgress if progress["numInputRows"]]

    def rows(self) -> list[tuple[object, ...]]:
        return rows(self._spark.read.parquet(str(self._folder / "out")))


def test_a_stream_has_every_entry_in_batches_within_its_limit(
    spark: SparkSession, durable_url: str, tmp_path: Path
) -> None:
    fill(durable_url, numbered(100))
    stream = Stream(spark, durable_url, tmp_path, maxRowsPerTrigger=40, rowsPerPartition=15)

    batches = stream.run()

    assert batches == [40, 40, 20]
    assert stream.rows() == plain(read(durable_url))


def test_a_stream_resumes_at_its_checkpoint(spark: SparkSession, durable_url: str, tmp_path: Path) -> None:
    fill(durable_url, numbered(30))
    stream = Stream(spark, durable_url, tmp_path)
    stream.run()

    fill(durable_url, numbered(20, start=30))
    batches = stream.run()

    assert batches == [20]
    assert stream.rows() == plain(read(durable_url))


def test_a_stream_begins_and_ends_at_its_options(spark: SparkSession, url: str, tmp_path: Path) -> None:
    fill(url, numbered(50))
    stream = Stream(spark, url, tmp_path, fromGlobalSeq=10, toGlobalSeq=30)

    stream.run()

    assert stream.rows() == plain(read(url)[10:30])


def test_a_stream_that_fell_behind_the_floor_ends_with_the_gap(spark: SparkSession, url: str, tmp_path: Path) -> None:
    fill(url, numbered(10))
    stream = Stream(spark, url, tmp_path)
    stream.run()
    fill(url, numbered(20, start=10))
    trim(url, 20)

    query = stream.start()

    with pytest.raises(PySparkException, match="the journal begins at 21; 11 to 20 were archived or trimmed"):
        query.awaitTermination()


def test_after_a_promotion_a_stream_resumes_below_the_fork_and_fails_beyond_it(
    spark: SparkSession, postgres_url: str, tmp_path: Path
) -> None:
    fill(postgres_url, numbered(10))
    stream = Stream(spark, postgres_url, tmp_path)
    stream.run()

    promote(postgres_url, kept=10, written=5)
    assert stream.run() == [5]
    assert stream.rows() == plain(read(postgres_url))

    promote(postgres_url, kept=12, written=20)
    with pytest.raises(PySparkException, match=r"position 15 of epoch .* begins at 13: .* fromGlobalSeq=12"):
        stream.run()

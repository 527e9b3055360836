"""The journal as a Spark source and sink: `spark.read.format("tape")`, batch and streaming.

Options: `store` (see `store_option`), `fromGlobalSeq` (a cursor, exclusive; `earliest` is 0), `toGlobalSeq`
(inclusive), `rowsPerPartition`, and for a stream `maxRowsPerTrigger`. The source does not read the lake: it refuses a
range that begins below the journal's floor, and the error says what to do.

`pushdown` (off) pushes filters on run_id, kind, subject and global_seq down if the session has that enabled. Use it for
a frame that is used once, in one query: Spark 4.3 keeps the plan of a frame, and a second query of the same frame
without a filter would get the rows of the first.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    Filter,
    InputPartition,
)
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from tape.core.ports import NO_EPOCH
from tape.lake.partitions import JournalPartition, PartitionReader, SourceCursor, split
from tape.lake.pushdown import PushedFilters, push_filters
from tape.lake.schema import source_ddl
from tape.lake.source_options import SourceOptions, read_options
from tape.lake.store_option import resolve

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

NAME: Final = "tape"
POSITION: Final = "global_seq"
EPOCH: Final = "epoch"
_PUSHDOWN: Final = "pyspark.sql.worker.data_source_pushdown_filters"


def register(spark: SparkSession) -> None:
    """Registers the source with a session that did not discover it."""
    spark.dataSource.register(TapeDataSource)


class TapeDataSource(DataSource):
    """The journal of the store that the options name."""

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        self._options = read_options(options)
        resolve(self._options.store, os.environ)  # so that a bad option fails now and not in the first task

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        return source_ddl()

    def reader(self, schema: StructType) -> JournalReader:
        reader = PushdownReader if self._options.has_pushdown and _is_pushdown_process() else JournalReader
        return reader(self._options, self._partition_reader(schema))

    def streamReader(self, schema: StructType) -> JournalStreamReader:  # noqa: N802 - Spark's name
        return JournalStreamReader(self._options, self._partition_reader(schema))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        from tape.lake.spark_sink import JournalWriter

        return JournalWriter.of(self.options, schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:  # noqa: N802
        from tape.lake.spark_sink import JournalStreamWriter

        return JournalStreamWriter.of(self.options, schema, overwrite)

    def _partition_reader(self, schema: StructType) -> PartitionReader:
        return PartitionReader.of(resolve(self._options.store, os.environ), schema)


class JournalReader(DataSourceReader):
    """Reads a range of the journal in partitions."""

    def __init__(self, options: SourceOptions, reader: PartitionReader) -> None:
        self._options = options
        self._reader = reader
        self._pushed = PushedFilters()

    def partitions(self) -> list[InputPartition]:
        partition = self._reader.plan(self._options.after, self._options.through)
        after = max(partition.after, min(self._pushed.after, partition.through))
        through = min(partition.through, max(self._pushed.through, after))
        return [*split(JournalPartition(after, through, partition.epoch), self._options.rows_per_partition)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._reader.read(JournalPartition.of(partition), self._pushed.selection)


class PushdownReader(JournalReader):
    """Takes filters from Spark, so that Spark does not apply them itself."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        self._pushed, left = push_filters(filters)
        return left


class JournalStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads the journal as it grows. It does not depend on `commit`, which Spark calls late or never.

    An offset is a position and the epoch in which it was planned. After a promotion an offset below the fork stays
    valid and one beyond it is refused: when the next batch is planned, when a batch is planned again after a crash,
    and in its tasks.
    """

    def __init__(self, options: SourceOptions, reader: PartitionReader) -> None:
        self._options = options
        self._reader = reader
        self._last: int | None = None

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's names, here and below
        partition = self._reader.plan(self._options.after, None)
        return _offset(partition.after, partition.epoch)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        most = self._options.max_rows_per_trigger
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._last = self._reader.extent().bounds.head

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        cursor = _cursor(start)
        partition = self._reader.plan(cursor.position, self._last_position(), cursor)
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else len(partition)
        return _offset(min(partition.through, partition.after + most), partition.epoch)

    def reportLatestOffset(self) -> dict[str, int]:  # noqa: N802
        extent = self._reader.extent()
        return _offset(extent.bounds.head, extent.epoch)

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        cursor, last = _cursor(start), _cursor(end)
        partition = self._reader.plan(cursor.position, last.position, cursor, last)
        return [*split(partition, self._options.rows_per_partition)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._reader.read(JournalPartition.of(partition))

    def commit(self, end: dict[str, int]) -> None:
        return

    def stop(self) -> None:
        return

    def _last_position(self) -> int | None:
        limits = [limit for limit in (self._last, self._options.through) if limit is not None]
        return min(limits) if limits else None


def _offset(position: int, epoch: int) -> dict[str, int]:
    return {POSITION: position, EPOCH: epoch}


def _cursor(offset: dict[str, int]) -> SourceCursor:
    """An offset without an epoch belongs to no journal, so that no batch can start from it."""
    return SourceCursor(offset[POSITION], offset.get(EPOCH, NO_EPOCH))


def _is_pushdown_process() -> bool:
    """Whether this is the process in which Spark pushes filters down.

    Spark refuses a reader that takes filters in any other process, and where pushdown is not enabled.
    """
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    return _PUSHDOWN in sys.modules or (main is not None and main.name == _PUSHDOWN)

"""The journal as a Spark source and sink: `spark.read.format("tape")`, batch and streaming.

Options: `store` (see `reference`), `fromGlobalSeq` (a cursor, exclusive; `earliest` is 0), `toGlobalSeq`
(inclusive), `rowsPerPartition`, and for a stream `maxRowsPerTrigger`. What was archived is not read: a range that
begins below the journal's floor is refused, with what to do.

`pushdown` (off) lets filters on run_id, kind, subject and global_seq go down where the session has that enabled. It is
for a frame that is used in one query and once in it: Spark 4.3 keeps what was planned for a frame, and a second query
of the same frame without a filter would get the rows of the first.
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
    """Makes the source known to a session that did not find it by itself."""
    spark.dataSource.register(TapeDataSource)


class TapeDataSource(DataSource):
    """The journal of the store that the options mean."""

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        self._asking = read_options(options)
        resolve(self._asking.store, os.environ)  # said now and not when the first task fails

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        return source_ddl()

    def reader(self, schema: StructType) -> JournalReader:
        kind = PushdownReader if self._asking.is_pushing and _is_pushing() else JournalReader
        return kind(self._asking, self._reading(schema))

    def streamReader(self, schema: StructType) -> JournalStreamReader:  # noqa: N802 - Spark's name
        return JournalStreamReader(self._asking, self._reading(schema))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        from tape.lake.spark_sink import JournalWriter

        return JournalWriter.of(self.options, schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:  # noqa: N802
        from tape.lake.spark_sink import JournalStreamWriter

        return JournalStreamWriter.of(self.options, schema, overwrite)

    def _reading(self, schema: StructType) -> PartitionReader:
        return PartitionReader.of(resolve(self._asking.store, os.environ), schema)


class JournalReader(DataSourceReader):
    """A range of the journal, in partitions."""

    def __init__(self, asking: SourceOptions, reading: PartitionReader) -> None:
        self._asking = asking
        self._reading = reading
        self._asked = PushedFilters()

    def partitions(self) -> list[InputPartition]:
        span = self._reading.span(self._asking.after, self._asking.through)
        after = max(span.after, min(self._asked.after, span.through))
        through = min(span.through, max(self._asked.through, after))
        return [*split(JournalPartition(after, through, span.epoch), self._asking.rows_per_partition)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._reading.read(JournalPartition.of(partition), self._asked.selection)


class PushdownReader(JournalReader):
    """The same, where Spark asks first what it need not filter itself."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        self._asked, left = push_filters(filters)
        return left


class JournalStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The journal as it grows. Nothing hangs on `commit`, which Spark calls late or never.

    An offset is a position and the epoch in which it was planned. After a promotion it goes on below the fork and is
    refused beyond it, when the next batch is planned, when one is planned again after a crash, and in its tasks.
    """

    def __init__(self, asking: SourceOptions, reading: PartitionReader) -> None:
        self._asking = asking
        self._reading = reading
        self._last: int | None = None

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's names, here and below
        span = self._reading.span(self._asking.after, None)
        return _offset(span.after, span.epoch)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        most = self._asking.max_rows_per_trigger
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._last = self._reading.extent().bounds.head

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        cursor = _cursor(start)
        span = self._reading.span(cursor.position, self._last_wanted(), cursor)
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else len(span)
        return _offset(min(span.through, span.after + most), span.epoch)

    def reportLatestOffset(self) -> dict[str, int]:  # noqa: N802
        extent = self._reading.extent()
        return _offset(extent.bounds.head, extent.epoch)

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        cursor, last = _cursor(start), _cursor(end)
        span = self._reading.span(cursor.position, last.position, cursor, last)
        return [*split(span, self._asking.rows_per_partition)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._reading.read(JournalPartition.of(partition))

    def commit(self, end: dict[str, int]) -> None:
        return

    def stop(self) -> None:
        return

    def _last_wanted(self) -> int | None:
        limits = [limit for limit in (self._last, self._asking.through) if limit is not None]
        return min(limits) if limits else None


def _offset(position: int, epoch: int) -> dict[str, int]:
    return {POSITION: position, EPOCH: epoch}


def _cursor(offset: dict[str, int]) -> SourceCursor:
    """An offset that names no epoch is of none, and nothing goes on from it."""
    return SourceCursor(offset[POSITION], offset.get(EPOCH, NO_EPOCH))


def _is_pushing() -> bool:
    """Whether Spark has asked for a reader in order to push filters.

    Where pushdown is not enabled it refuses a reader that can, and it pushes in a process of its own.
    """
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    return _PUSHDOWN in sys.modules or (main is not None and main.name == _PUSHDOWN)

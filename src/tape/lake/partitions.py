"""Ranges of the journal that Spark tasks read in parallel; each task counts what it reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql.datasource import InputPartition

from tape.core.errors import BrokerOverflowError, Corrupt, InvalidCursor, UsageError, quoted
from tape.core.ids import GlobalSeq
from tape.lake.errors import check_resumable
from tape.lake.schema import COLUMNS, spark_type
from tape.lake.source_options import EARLIEST
from tape.store.ranges import EVERYTHING, Extent, Ranges, RangeSelection, open_ranges

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType


class BelowFloor(BrokerOverflowError):
    """The range begins below the journal's floor, and the source does not read the lake."""

    def __str__(self) -> str:
        first, floor = self.requested_seq, self.available_from
        return (
            f"the journal begins at {floor}; {first} to {floor - 1} were archived or trimmed, and this source reads "
            "the journal only: for the lake and the journal together use tape.lake.dry_run(spark, store, lake, '/**'); "
            f"for the journal's part alone set fromGlobalSeq={floor - 1}"
        )


class SourceCursor(NamedTuple):
    """A position up to which a query has read, and the epoch in which it did."""

    position: int
    epoch: int


@dataclass(frozen=True)
class JournalPartition(InputPartition):
    """Positions above `after` and up to `through`, planned in an epoch."""

    after: int
    through: int
    epoch: int

    @classmethod
    def of(cls, partition: InputPartition) -> JournalPartition:
        if not isinstance(partition, cls):
            raise UsageError(f"a partition is a range of positions, not {quoted(partition)}")
        return partition

    def __len__(self) -> int:
        return self.through - self.after


def split(partition: JournalPartition, rows: int) -> Iterator[JournalPartition]:
    """Splits a partition into parts of about the same length, at most `rows` each; an empty one stays one part."""
    count = max(1, -(-len(partition) // rows))
    edges = [partition.after + len(partition) * place // count for place in range(count + 1)]
    return (JournalPartition(after, through, partition.epoch) for after, through in pairwise(edges))


@dataclass(frozen=True, slots=True)
class PartitionReader:
    """Reads some columns of the journal at a URL; the URL may hold a password and is in no repr."""

    url: str = field(repr=False)
    schema: pa.Schema = field(repr=False)

    @classmethod
    def of(cls, url: str, schema: StructType) -> PartitionReader:
        from pyspark.sql.pandas.types import to_arrow_schema

        for each in schema.fields:
            if each.name not in COLUMNS or each.dataType.simpleString().upper() != spark_type(each.name):
                raise UsageError(f"an entry has no column {each.name} {each.dataType.simpleString()}")
        return cls(url, to_arrow_schema(schema, timezone="UTC"))

    def extent(self) -> Extent:
        with open_ranges(self.url) as ranges:
            return ranges.extent()

    def plan(self, after: int, through: int | None, *cursors: SourceCursor) -> JournalPartition:
        """Checks that the journal holds a range, and that the cursors belong to the history it has now."""
        extent = self.extent()
        for cursor in cursors:
            check_resumable(extent.terms, cursor.epoch, cursor.position)
        floor, head = extent.bounds
        after = 0 if after == EARLIEST else after
        if after > head:
            raise InvalidCursor(f"the journal ends at {head}: no reader can have reached {after}")
        if after + 1 < floor:
            raise BelowFloor(None, after + 1, floor)
        if through is not None and through > head:
            raise InvalidCursor(f"the journal ends at {head}, before {through}")
        return JournalPartition(after, head if through is None else max(after, through), extent.epoch)

    def read(self, partition: JournalPartition, selection: RangeSelection = EVERYTHING) -> Iterator[pa.RecordBatch]:
        """Reads a range. Raises Corrupt if an entry is missing: positions are dense, so the count is a checksum."""
        import pyarrow as pa

        if not len(partition):
            return
        with open_ranges(self.url) as ranges:
            rows = 0
            for batch in ranges.read(partition.after, partition.through, self.schema.names, selection):
                rows += batch.num_rows
                yield pa.RecordBatch.from_arrays(batch.columns, schema=self.schema)
            _check_complete(
                ranges, partition, rows if selection.is_everything else ranges.count(partition.after, partition.through)
            )


def _check_complete(ranges: Ranges, partition: JournalPartition, rows: int) -> None:
    """Checks after reading that no entry of the range was trimmed or lost in a promotion meanwhile.

    The floor rises before entries are deleted, and a session stays connected to one server.
    """
    (floor, _), terms = ranges.extent()
    check_resumable(terms, partition.epoch, partition.through)
    if partition.after + 1 < floor:
        raise BelowFloor(None, partition.after + 1, floor)
    if rows != len(partition):
        reason = (
            f"{len(partition)} entries are above {partition.after} and up to {partition.through}, but {rows} were found"
        )
        raise Corrupt(reason, GlobalSeq(partition.after))

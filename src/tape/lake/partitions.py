"""The journal in ranges that tasks read side by side; each counts what it reads."""

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
from tape.store.ranges import EVERYTHING, Extent, Ranges, Selection, open_ranges

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType


class BelowFloor(BrokerOverflowError):
    """What is asked for is no longer in the journal, and the source reads nothing else."""

    def __str__(self) -> str:
        first, floor = self.requested_seq, self.available_from
        return (
            f"the journal begins at {floor}; {first} to {floor - 1} were archived or trimmed, and this source reads "
            "the journal only: for the lake and the journal together use tape.lake.dry_run(spark, store, lake, '/**'); "
            f"for the journal's part alone set fromGlobalSeq={floor - 1}"
        )


class SourceCursor(NamedTuple):
    """A position up to which somebody has read, and the epoch in which it was read."""

    position: int
    epoch: int


@dataclass(frozen=True)
class JournalPartition(InputPartition):
    """Positions above `after` and up to `through`, as they were in an epoch."""

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


def split(span: JournalPartition, rows: int) -> Iterator[JournalPartition]:
    """Ranges of about the same length, each at most so long; one without a position where there is nothing."""
    count = max(1, -(-len(span) // rows))
    edges = [span.after + len(span) * place // count for place in range(count + 1)]
    return (JournalPartition(after, through, span.epoch) for after, through in pairwise(edges))


@dataclass(frozen=True, slots=True)
class PartitionReader:
    """Some columns of the journal at a URL, which may hold a password and is shown nowhere."""

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

    def span(self, after: int, through: int | None, *cursors: SourceCursor) -> JournalPartition:
        """The range that is asked for, if all of it is there; the earliest position there ever was is 1.

        What is known of it from earlier are cursors, and each of them must be of the history that the journal has now.
        """
        extent = self.extent()
        for cursor in cursors:
            check_resumable(extent.terms, cursor.epoch, cursor.position)
        floor, head = extent.bounds
        after = 0 if after == EARLIEST else after
        if after > head:
            raise InvalidCursor(f"the journal ends at {head}: nobody can have read up to {after}")
        if after + 1 < floor:
            raise BelowFloor(None, after + 1, floor)
        if through is not None and through > head:
            raise InvalidCursor(f"the journal ends at {head}, before {through}")
        return JournalPartition(after, head if through is None else max(after, through), extent.epoch)

    def read(self, span: JournalPartition, selection: Selection = EVERYTHING) -> Iterator[pa.RecordBatch]:
        """The entries of a range. It fails if they are not all: positions are dense, so their count is a checksum."""
        import pyarrow as pa

        if not len(span):
            return
        with open_ranges(self.url) as ranges:
            rows = 0
            for batch in ranges.read(span.after, span.through, self.schema.names, selection):
                rows += batch.num_rows
                yield pa.RecordBatch.from_arrays(batch.columns, schema=self.schema)
            _check_whole(ranges, span, rows if selection.is_everything else ranges.count(span.after, span.through))


def _check_whole(ranges: Ranges, span: JournalPartition, rows: int) -> None:
    """A floor rises before anything goes: if it is still below the range, nothing of it went while it was read.

    A session stays with its server: what it has read is in the history that it then has.
    """
    (floor, _), terms = ranges.extent()
    check_resumable(terms, span.epoch, span.through)
    if span.after + 1 < floor:
        raise BelowFloor(None, span.after + 1, floor)
    if rows != len(span):
        reason = f"{len(span)} entries are above {span.after} and up to {span.through}, but {rows} were found"
        raise Corrupt(reason, GlobalSeq(span.after))

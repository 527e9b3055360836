"""A range of positions as one frame: the lake's part is read there, the rest in the journal, each position once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from tape.core.errors import BrokerOverflowError, InvalidCursor, UsageError
from tape.lake.log import DeltaLog, LakeSnapshot
from tape.lake.row_groups import entries_of
from tape.lake.same_journal import check_head, check_last_entry
from tape.lake.schema import COLUMNS, spark_ddl
from tape.lake.spark_paths import read_parquet
from tape.lake.store_option import option_for
from tape.store.ranges import EVERYTHING, Ranges, arrow_schema, open_ranges

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionRange:
    """Positions above `after` and up to `through`; those up to the lake's end are in the snapshot's files."""

    after: int
    through: int
    snapshot: LakeSnapshot

    def __len__(self) -> int:
        return self.through - self.after

    @property
    def last_in_lake(self) -> int:
        """The last position that is read in the lake."""
        return min(max(self.after, self.snapshot.through), self.through)


def position_range(url: str, log: DeltaLog, after: int = 0, through: int | None = None) -> PositionRange:
    """Checks that every position of a range can be read; raises Conflict if the lake is another journal's."""
    with open_ranges(url) as ranges:
        floor = ranges.bounds().floor  # read before the lake, so that the lake holds everything below it
        snapshot = log.snapshot()
        head = ranges.bounds().head
        _check_lake(ranges, log, snapshot, floor, head)
    end = head if through is None else through
    if max(after, end) > head:
        raise InvalidCursor(f"the journal ends at {head}, before {max(after, end)}")
    if end < after:
        raise UsageError(f"a range of history ends after it begins, and {end} is before {after}")
    found = PositionRange(after=after, through=end, snapshot=snapshot)
    if found.last_in_lake < end and found.last_in_lake + 1 < floor:
        raise BrokerOverflowError(None, found.last_in_lake + 1, floor)
    return found


def entries(spark: SparkSession, url: str, log: DeltaLog, positions: PositionRange) -> DataFrame:
    """The entries of a range, with the journal's columns; the URL's secrets stay out of Spark's plans."""
    after, last = positions.after, positions.last_in_lake
    files = [file for file in positions.snapshot.files if file.first <= last and file.last > after]
    parts = []
    if files:
        cold = read_parquet(spark, (log.table / file.path for file in files), spark_ddl())
        parts.append(cold.filter(cold.global_seq.between(after + 1, last)))
    if last < positions.through:
        options = {"fromGlobalSeq": last, "toGlobalSeq": positions.through}
        parts.append(spark.read.format("tape").options(store=option_for(url), **options).load())
    if not parts:
        return spark.createDataFrame([], spark_ddl())
    return parts[0] if len(parts) == 1 else parts[0].unionByName(parts[1])


def _check_lake(ranges: Ranges, log: DeltaLog, snapshot: LakeSnapshot, floor: int, head: int) -> None:
    check_head(snapshot, head)
    if floor <= snapshot.through:
        batches = list(ranges.read(snapshot.through - 1, snapshot.through, COLUMNS, EVERYTHING))
        (found,) = entries_of(pa.Table.from_batches(batches, arrow_schema()))
        check_last_entry(log, snapshot, found)

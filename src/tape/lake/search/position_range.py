"""All of history as one frame: what the lake holds is read there and the rest in the journal, each position once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from tape.core.errors import BrokerOverflowError, InvalidCursor, UsageError
from tape.lake.errors import check_same, lake_beyond_journal
from tape.lake.log import DeltaLog, LakeSnapshot
from tape.lake.pipeline import last_entry
from tape.lake.row_groups import entries_of
from tape.lake.schema import COLUMNS, spark_ddl
from tape.lake.spark_paths import read_parquet
from tape.lake.store_option import option_for
from tape.store.ranges import EVERYTHING, Ranges, arrow_schema, open_ranges

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionRange:
    """Positions above `after` and up to `through`; those up to the lake's end are in the files that were seen."""

    after: int
    through: int
    seen: LakeSnapshot

    def __len__(self) -> int:
        return self.through - self.after

    @property
    def seam(self) -> int:
        """The last position that is read in the lake."""
        return min(max(self.after, self.seen.through), self.through)


def position_range(url: str, log: DeltaLog, after: int = 0, through: int | None = None) -> PositionRange:
    """What is asked for, as it is now, if all of it is there; Conflict if the lake is another journal's."""
    with open_ranges(url) as ranges:
        floor = ranges.bounds().floor  # before the lake is looked at: what is below is there, whoever archives now
        seen = log.snapshot()
        head = ranges.bounds().head
        _check_same_journal(ranges, log, seen, floor, head)
    end = head if through is None else through
    if max(after, end) > head:
        raise InvalidCursor(f"the journal ends at {head}, before {max(after, end)}")
    if end < after:
        raise UsageError(f"a range of history ends after it begins, and {end} is before {after}")
    found = PositionRange(after=after, through=end, seen=seen)
    if found.seam < end and found.seam + 1 < floor:
        raise BrokerOverflowError(None, found.seam + 1, floor)
    return found


def entries(spark: SparkSession, url: str, log: DeltaLog, asked: PositionRange) -> DataFrame:
    """Its entries, with the columns of the journal; the URL's secrets stay out of Spark's plans."""
    files = [file for file in asked.seen.files if file.first <= asked.seam and file.last > asked.after]
    parts = []
    if files:
        cold = read_parquet(spark, (log.table / file.path for file in files), spark_ddl())
        parts.append(cold.filter(cold.global_seq.between(asked.after + 1, asked.seam)))
    if asked.seam < asked.through:
        options = {"fromGlobalSeq": asked.seam, "toGlobalSeq": asked.through}
        parts.append(spark.read.format("tape").options(store=option_for(url), **options).load())
    if not parts:
        return spark.createDataFrame([], spark_ddl())
    return parts[0] if len(parts) == 1 else parts[0].unionByName(parts[1])


def _check_same_journal(ranges: Ranges, log: DeltaLog, seen: LakeSnapshot, floor: int, head: int) -> None:
    if seen.through > head:
        raise lake_beyond_journal(seen.through, head)
    if floor <= seen.through:
        batches = list(ranges.read(seen.through - 1, seen.through, COLUMNS, EVERYTHING))
        (found,) = entries_of(pa.Table.from_batches(batches, arrow_schema()))
        check_same(last_entry(log, seen), found)

"""A dry run of a backfill: what its plan matches, day by day, and the predicates' errors, one step at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from heapq import nlargest
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everybody calls them

from tape.core.search import DayFound, EntryFound, ErrorFound, Findings
from tape.lake.schema import GLOBAL_SEQ, RUN_ID, SEQ, SUBJECT, TS_MS
from tape.lake.search.backfill import OLDER, BackfillPlan, definitions_in, entries_under, matches
from tape.lake.search.dry_run import CAUSES, SAMPLES, HistorySource, day_column, frequent_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession


@dataclass(slots=True)
class DryRunTally:
    """The sums of the steps so far."""

    after: int
    through: int
    searched: int = 0
    older: int = 0
    days: Counter[int] = field(default_factory=Counter)
    newest: list[EntryFound] = field(default_factory=list)
    errors: dict[str, ErrorFound] = field(default_factory=dict)

    def add_days(self, rows: Iterable[Row]) -> None:
        for row in rows:
            self.days[row["day_ms"]] += row["matches"]
            self.older += row[OLDER]
            found = [EntryFound(**entry.asDict()) for entry in row["newest"]]
            self.newest = nlargest(SAMPLES, self.newest + found, key=lambda entry: entry.global_seq)

    def add_errors(self, found: Iterable[ErrorFound]) -> None:
        for error in found:
            before = self.errors.get(error.error)
            self.errors[error.error] = error if before is None else before.merged(error)

    def findings(self) -> Findings:
        return Findings(
            after=self.after,
            through=self.through,
            searched=self.searched,
            matches=self.days.total(),
            older=self.older,
            days=tuple(DayFound(day_ms=day, matches=count) for day, count in sorted(self.days.items())),
            samples=tuple(self.newest),
            errors=tuple(nlargest(CAUSES, self.errors.values(), key=lambda error: error.entries)),
        )


def dry_run_backfill(spark: SparkSession, store: str, lake: Path | str, plan: BackfillPlan) -> Iterator[Findings]:
    """Yields after each step what a backfill by this plan would match; makes no tasks."""
    source, tally = HistorySource.of(spark, store, lake), DryRunTally(plan.after, plan.through)
    for after, through in plan.steps():
        frame = matches(source, plan, after, through)
        tally.add_days(() if frame is None else _days(frame))
        for _, span in definitions_in(plan, after, through):
            entries, reaction = entries_under(source, span), span.reaction
            tally.add_errors(frequent_errors(entries, reaction.subject_pattern, reaction.predicate_cel))
        tally.searched += through - after
        yield tally.findings()


def _days(matched: DataFrame) -> list[Row]:
    entry = F.struct(GLOBAL_SEQ, RUN_ID, SEQ, SUBJECT, TS_MS)
    numbers = F.count("*").alias("matches"), F.sum(OLDER).alias(OLDER)
    newest = F.max_by(entry, GLOBAL_SEQ, SAMPLES).alias("newest")
    return matched.groupBy(day_column()).agg(*numbers, newest).collect()

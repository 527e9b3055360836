"""A dry run of a backfill: what its plan matches, day by day, and how predicates erred, a stretch at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from heapq import nlargest
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everybody calls them

from tape.core.predicate.predicate import Predicate
from tape.core.search import DayFound, EntryFound, ErrorFound, Findings
from tape.lake.schema import GLOBAL_SEQ, RUN_ID, SEQ, SUBJECT, TS_MS
from tape.lake.search.backfill import OLDER, BackfillPlan, definitions_in, entries_under, matches
from tape.lake.search.dry_run import CAUSES, DAY_MS, SAMPLES, Cause, HistorySource
from tape.lake.search.history import causes, errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

    from tape.core.reaction import Reaction


@dataclass(slots=True)
class DryRunTally:
    """What the stretches have come to so far."""

    after: int
    through: int
    searched: int = 0
    older: int = 0
    days: Counter[int] = field(default_factory=Counter)
    newest: list[EntryFound] = field(default_factory=list)
    causes: dict[str, Cause] = field(default_factory=dict)

    def add_days(self, rows: Iterable[Row]) -> None:
        for row in rows:
            self.days[row["day_ms"]] += row["matches"]
            self.older += row[OLDER]
            found = [EntryFound(**entry.asDict()) for entry in row["newest"]]
            self.newest = nlargest(SAMPLES, self.newest + found, key=lambda entry: entry.global_seq)

    def add_causes(self, found: Iterable[Cause]) -> None:
        for cause in found:
            before = self.causes.get(cause.error)
            self.causes[cause.error] = cause if before is None else _joined(before, cause)

    def findings(self) -> Findings:
        frequent = nlargest(CAUSES, self.causes.values(), key=lambda cause: cause.entries)
        return Findings(
            after=self.after,
            through=self.through,
            searched=self.searched,
            matches=self.days.total(),
            older=self.older,
            days=tuple(DayFound(day_ms=day, matches=count) for day, count in sorted(self.days.items())),
            samples=tuple(self.newest),
            errors=tuple(ErrorFound(**cause._asdict()) for cause in frequent),
        )


def dry_run_backfill(spark: SparkSession, store: str, lake: Path | str, plan: BackfillPlan) -> Iterator[Findings]:
    """What a backfill by this plan would match, as it becomes known; nothing is made."""
    source, tally = HistorySource.of(spark, store, lake), DryRunTally(plan.after, plan.through)
    for after, through in plan.steps():
        frame = matches(source, plan, after, through)
        tally.add_days(() if frame is None else _days(frame))
        for _, span in definitions_in(plan, after, through):
            tally.add_causes(_causes(entries_under(source, span), span.reaction))
        tally.searched += through - after
        yield tally.findings()


def _days(matched: DataFrame) -> list[Row]:
    day = F.col(TS_MS) - F.pmod(F.col(TS_MS), F.lit(DAY_MS))
    places = F.struct(GLOBAL_SEQ, RUN_ID, SEQ, SUBJECT, TS_MS)
    numbers = F.count("*").alias("matches"), F.sum(OLDER).alias(OLDER)
    return (
        matched.groupBy(day.alias("day_ms"))
        .agg(*numbers, F.max_by(places, GLOBAL_SEQ, SAMPLES).alias("newest"))
        .collect()
    )


def _causes(seen: DataFrame, reaction: Reaction) -> list[Cause]:
    if Predicate(reaction.predicate_cel).is_blank:
        return []
    found = causes(errors(seen, reaction.subject_pattern, reaction.predicate_cel)).orderBy(F.desc("entries"), "error")
    return [Cause(*row) for row in found.limit(CAUSES).collect()]


def _joined(one: Cause, other: Cause) -> Cause:
    first, last = min(one.first_global_seq, other.first_global_seq), max(one.last_global_seq, other.last_global_seq)
    return Cause(one.error, one.entries + other.entries, first, last)

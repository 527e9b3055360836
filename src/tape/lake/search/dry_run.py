"""A dry run: what a reaction would have matched in all of history, how its predicate erred, and what that cost."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from heapq import nlargest
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.sql import functions as F  # noqa: N812 - as everybody calls them

from tape.core.event import Entry
from tape.core.folder import local_folder
from tape.core.predicate.predicate import Predicate
from tape.core.subject import Pattern
from tape.lake.lazy_reader import TABLE
from tape.lake.log import DeltaLog
from tape.lake.schema import COLUMNS, GLOBAL_SEQ, TS_MS
from tape.lake.search.history import (
    PREVIOUS,
    CompiledPart,
    causes,
    errors,
    explain,
    history,
    left_to_evaluator,
    previous_value,
)
from tape.lake.search.position_range import PositionRange, entries, position_range
from tape.lake.store_option import has_password, resolve

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

DAY_MS: Final = 86_400_000
SAMPLES: Final = 5
CAUSES: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryQuery:
    """What to look for, and where: above a position, up to one, and not before a time."""

    pattern: str
    where: str = ""
    after: int = 0
    through: int | None = None
    since: datetime | None = None

    def __post_init__(self) -> None:
        Pattern.parse(self.pattern)
        Predicate(self.where)


class Day(NamedTuple):
    """A day that had matches, by its first millisecond."""

    day_ms: int
    matches: int


class EntryPosition(NamedTuple):
    """Where and when an entry was said."""

    global_seq: int
    ts_ms: int


class Cause(NamedTuple):
    """How the predicate erred, how often, and where first and last."""

    error: str
    entries: int
    first_global_seq: int
    last_global_seq: int


class SearchCost(NamedTuple):
    """How many entries were looked at, of how many of them the evaluator had to be asked, and how long it took."""

    entries: int
    asked: int
    seconds: float

    @property
    def native(self) -> float:
        """The share that Spark answered by itself."""
        return 1 - self.asked / self.entries if self.entries else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRunSummary:
    """What a dry run found; the samples are the newest matches, and causes the most frequent ones."""

    matches: int
    first: EntryPosition | None
    last: EntryPosition | None
    days: tuple[Day, ...]
    samples: tuple[Entry, ...]
    errors: tuple[Cause, ...]
    cost: SearchCost
    parts: tuple[CompiledPart, ...]


def dry_run(
    spark: SparkSession,
    store: str,
    lake: Path | str,
    pattern: str,
    where: str = "",
    *,
    from_global_seq: int = 0,
    to_global_seq: int | None = None,
    since: datetime | None = None,
) -> DataFrame:
    """The entries that a reaction would have matched: the columns of the journal, and the value before as its own.

    The store is a URL or what the source's option says; the lake may be missing. What comes after this call is not
    in it.
    """
    asked = HistoryQuery(pattern=pattern, where=where, after=from_global_seq, through=to_global_seq, since=since)
    source = HistorySource.of(spark, store, lake)
    return history(source.entries(asked, source.position_range(asked)), pattern, where)


def summarize_dry_run(spark: SparkSession, store: str, lake: Path | str, asked: HistoryQuery) -> DryRunSummary:
    """The same in numbers, with samples and errors."""
    started = perf_counter()
    source = HistorySource.of(spark, store, lake)
    part = source.position_range(asked)
    seen = source.entries(asked, part)
    days = _days(history(seen, asked.pattern, asked.where))
    looked_at = len(part) if asked.since is None else seen.count()
    return DryRunSummary(
        matches=sum(row["matches"] for row in days),
        first=EntryPosition(days[0]["first"], days[0]["first_ts_ms"]) if days else None,
        last=EntryPosition(days[-1]["last"], days[-1]["last_ts_ms"]) if days else None,
        days=tuple(Day(row["day_ms"], row["matches"]) for row in days),
        samples=_samples(source, asked, part, nlargest(SAMPLES, (place for row in days for place in row["newest"]))),
        errors=_causes(seen, asked),
        cost=SearchCost(looked_at, _asked(seen, asked), perf_counter() - started),
        parts=tuple(explain(asked.where)),
    )


@dataclass(frozen=True, slots=True)
class HistorySource:
    """All of history of one journal, wherever it is by now."""

    spark: SparkSession
    url: str
    log: DeltaLog

    @classmethod
    def of(cls, spark: SparkSession, store: str, lake: Path | str) -> HistorySource:
        return cls(
            spark,
            store if has_password(store) else resolve(store, os.environ),
            DeltaLog(local_folder(lake, "a lake") / TABLE),
        )

    def position_range(self, asked: HistoryQuery) -> PositionRange:
        return position_range(self.url, self.log, asked.after, asked.through)

    def entries(self, asked: HistoryQuery, part: PositionRange) -> DataFrame:
        """Entries as the matcher sees them; time never falls along positions, so a time is a place, too."""
        found = entries(self.spark, self.url, self.log, part)
        if asked.since is not None:
            found = found.filter(F.col(TS_MS) >= int(asked.since.timestamp() * 1000))
        return found.withColumn(PREVIOUS, F.expr(previous_value()))


def _days(matched: DataFrame) -> list[Row]:
    day = F.col(TS_MS) - F.pmod(F.col(TS_MS), F.lit(DAY_MS))
    found = matched.groupBy(day.alias("day_ms")).agg(
        F.count("*").alias("matches"),
        F.min(GLOBAL_SEQ).alias("first"),
        F.max(GLOBAL_SEQ).alias("last"),
        F.min(TS_MS).alias("first_ts_ms"),
        F.max(TS_MS).alias("last_ts_ms"),
        F.max_by(GLOBAL_SEQ, GLOBAL_SEQ, SAMPLES).alias("newest"),
    )
    return sorted(found.collect(), key=lambda row: row["day_ms"])


def _samples(
    source: HistorySource, asked: HistoryQuery, part: PositionRange, newest: Sequence[int]
) -> tuple[Entry, ...]:
    """The newest matches whole, read where they are and nowhere else."""
    if not newest:
        return ()
    near = PositionRange(after=newest[-1] - 1, through=newest[0], seen=part.seen)
    found = history(source.entries(asked, near), asked.pattern, asked.where).select(*COLUMNS).collect()
    return tuple(sorted((entry_of(row) for row in found), key=lambda entry: entry.global_seq, reverse=True))


def entry_of(values: Iterable[object]) -> Entry:
    """An entry of a row's values, in the order of the journal's columns."""
    return Entry._make(bytes(value) if isinstance(value, bytearray) else value for value in values)


def _causes(seen: DataFrame, asked: HistoryQuery) -> tuple[Cause, ...]:
    if Predicate(asked.where).is_blank:
        return ()
    found = causes(errors(seen, asked.pattern, asked.where)).orderBy(F.desc("entries"), "error")
    return tuple(Cause(*row) for row in found.limit(CAUSES).collect())


def _asked(seen: DataFrame, asked: HistoryQuery) -> int:
    left = left_to_evaluator(seen, asked.pattern, asked.where)
    return 0 if left is None else left.count()

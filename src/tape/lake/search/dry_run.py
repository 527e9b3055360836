"""A dry run: what a reaction would have matched in all of history, its predicate's errors, and the cost."""

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
from tape.core.search import DayFound, ErrorFound
from tape.core.subject import Pattern
from tape.lake.lazy_reader import TABLE
from tape.lake.log import DeltaLog
from tape.lake.schema import COLUMNS, GLOBAL_SEQ, TS_MS
from tape.lake.search.history import PREVIOUS, errors, errors_by_cause, history, left_to_evaluator, previous_value
from tape.lake.search.position_range import PositionRange, entries, position_range
from tape.lake.sql.predicate import CompiledPart, explain
from tape.lake.store_option import has_password, resolve

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row, SparkSession

DAY_MS: Final = 86_400_000
SAMPLES: Final = 5
CAUSES: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryQuery:
    """A pattern and a predicate, over the positions above `after` up to `through`, or since a time."""

    pattern: str
    where: str = ""
    after: int = 0
    through: int | None = None
    since: datetime | None = None

    def __post_init__(self) -> None:
        Pattern.parse(self.pattern)
        Predicate(self.where)


class EntryPosition(NamedTuple):
    """The position and the time of an entry."""

    global_seq: int
    ts_ms: int


class SearchCost(NamedTuple):
    """How many entries were searched, how many of them the CEL evaluator had to judge, and how long it took."""

    entries: int
    asked: int
    seconds: float

    @property
    def native(self) -> float:
        """The share that Spark judged by itself."""
        return 1 - self.asked / self.entries if self.entries else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRunSummary:
    """What a dry run found; samples are the newest matches, errors the most frequent ones."""

    matches: int
    first: EntryPosition | None
    last: EntryPosition | None
    days: tuple[DayFound, ...]
    samples: tuple[Entry, ...]
    errors: tuple[ErrorFound, ...]
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
    """The entries that a reaction would have matched, with the journal's columns and `prev_value_json`.

    The store is a URL or a value of the source's option `store`; the lake may be missing. Entries that are appended
    after this call are not in the frame.
    """
    query = HistoryQuery(pattern=pattern, where=where, after=from_global_seq, through=to_global_seq, since=since)
    source = HistorySource.of(spark, store, lake)
    return history(source.entries(query, source.positions(query)), pattern, where)


def summarize_dry_run(spark: SparkSession, store: str, lake: Path | str, query: HistoryQuery) -> DryRunSummary:
    """Counts the matches of a dry run by day, with samples and errors."""
    started = perf_counter()
    source = HistorySource.of(spark, store, lake)
    positions = source.positions(query)
    searched = source.entries(query, positions)
    days = _days(history(searched, query.pattern, query.where))
    newest = nlargest(SAMPLES, (position for row in days for position in row["newest"]))
    entry_count = len(positions) if query.since is None else searched.count()
    return DryRunSummary(
        matches=sum(row["matches"] for row in days),
        first=EntryPosition(days[0]["first"], days[0]["first_ts_ms"]) if days else None,
        last=EntryPosition(days[-1]["last"], days[-1]["last_ts_ms"]) if days else None,
        days=tuple(DayFound(day_ms=row["day_ms"], matches=row["matches"]) for row in days),
        samples=_samples(source, query, positions, newest),
        errors=frequent_errors(searched, query.pattern, query.where),
        cost=SearchCost(entry_count, _judged_by_evaluator(searched, query), perf_counter() - started),
        parts=tuple(explain(query.where)),
    )


@dataclass(frozen=True, slots=True)
class HistorySource:
    """The whole history of one journal: its lake and its store."""

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

    def positions(self, query: HistoryQuery) -> PositionRange:
        return position_range(self.url, self.log, query.after, query.through)

    def entries(self, query: HistoryQuery, positions: PositionRange) -> DataFrame:
        """The entries as the matcher sees them, of a range and since the query's time."""
        found = entries(self.spark, self.url, self.log, positions)
        if query.since is not None:
            found = found.filter(F.col(TS_MS) >= int(query.since.timestamp() * 1000))
        return found.withColumn(PREVIOUS, F.expr(previous_value()))


def day_column() -> Column:
    """The first millisecond of an entry's day."""
    return (F.col(TS_MS) - F.pmod(F.col(TS_MS), F.lit(DAY_MS))).alias("day_ms")


def frequent_errors(searched: DataFrame, pattern: str, where: str) -> tuple[ErrorFound, ...]:
    """The most frequent errors of a predicate on the entries under a pattern."""
    if Predicate(where).is_blank:
        return ()
    found = errors_by_cause(errors(searched, pattern, where)).orderBy(F.desc("entries"), "error").limit(CAUSES)
    return tuple(ErrorFound(**row.asDict()) for row in found.collect())


def entry_of(values: Iterable[object]) -> Entry:
    """Makes an entry of a row's values, which are in the order of the journal's columns."""
    return Entry._make(bytes(value) if isinstance(value, bytearray) else value for value in values)


def _days(matched: DataFrame) -> list[Row]:
    found = matched.groupBy(day_column()).agg(
        F.count("*").alias("matches"),
        F.min(GLOBAL_SEQ).alias("first"),
        F.max(GLOBAL_SEQ).alias("last"),
        F.min(TS_MS).alias("first_ts_ms"),
        F.max(TS_MS).alias("last_ts_ms"),
        F.max_by(GLOBAL_SEQ, GLOBAL_SEQ, SAMPLES).alias("newest"),
    )
    return sorted(found.collect(), key=lambda row: row["day_ms"])


def _samples(
    source: HistorySource, query: HistoryQuery, positions: PositionRange, newest: Sequence[int]
) -> tuple[Entry, ...]:
    """Reads the newest matches with all columns, from their own range of positions only."""
    if not newest:
        return ()
    near = PositionRange(after=newest[-1] - 1, through=newest[0], snapshot=positions.snapshot)
    found = history(source.entries(query, near), query.pattern, query.where).select(*COLUMNS).collect()
    return tuple(sorted((entry_of(row) for row in found), key=lambda entry: entry.global_seq, reverse=True))


def _judged_by_evaluator(searched: DataFrame, query: HistoryQuery) -> int:
    left = left_to_evaluator(searched, query.pattern, query.where)
    return 0 if left is None else left.count()

"""A backfill: finds with Spark the tasks that a reaction would have from the beginning, and makes missing ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark.sql import DataFrame, functions as F  # noqa: N812 - as everybody calls them

from tape.core.errors import NotFound, UsageError
from tape.core.predicate.predicate import Predicate
from tape.core.reaction import system_run
from tape.core.registration import REACTION, ActiveRange, reaction_history
from tape.core.task import MAX_DEPTH, Match
from tape.lake.schema import COLUMNS, GLOBAL_SEQ, SUBJECT
from tape.lake.search.dry_run import HistoryQuery, HistorySource, entry_of
from tape.lake.search.history import PREVIOUS, history

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

    from tape.bus.journal import Journal
    from tape.core.ports import Store

STEP: Final = 200_000
SPANS: Final = 8
ROWS: Final = 200
DEPTH: Final = "depth"
WHICH: Final = "which"
OLDER: Final = "older"


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillPlan:
    """Which positions are matched with which definition; it ends at the reaction's cursor."""

    reaction_id: str
    after: int
    through: int
    spans: tuple[ActiveRange, ...]

    def steps(self) -> Iterator[tuple[int, int]]:
        """Splits the plan into ranges, each of few entries and few definitions: Spark's plan grows faster than both.

        The newest range comes first if the reaction is debounced, because a newer entry replaces older ones.
        """
        changes = (span.through for span in self.spans[SPANS - 1 :: SPANS])
        inner = {*range(self.after, self.through, STEP), *changes}
        cuts = list(
            pairwise(sorted({self.after, self.through, *(at for at in inner if self.after < at < self.through)}))
        )
        is_newest_first = any(span.reaction.debounce_ms for span in self.spans)
        return iter(reversed(cuts) if is_newest_first else cuts)


@dataclass(frozen=True, slots=True)
class FoundMatches:
    """Some of the matches, and how many positions have been searched."""

    matches: Sequence[Match]
    searched: int


async def plan_backfill(
    store: Store, journal: Journal, reaction_id: str, after: int = 0, through: int | None = None
) -> BackfillPlan:
    """Plans a backfill up to the reaction's cursor; later entries are left to the matcher."""
    record = await store.reactions.find(reaction_id)
    if record is None or record.is_removed:
        raise NotFound(f"there is no reaction {reaction_id!r}")
    entries = journal.stream(run_id=system_run(reaction_id), follow=False)
    force = reaction_history([entry async for entry in entries if entry.kind == REACTION])
    if force is None:
        raise NotFound(f"the journal has no registration of {reaction_id!r} any more")
    end = record.cursor if through is None else min(through, record.cursor)
    if end < after:
        raise UsageError(f"a backfill ends after it begins, and {end} is before {after}")
    return BackfillPlan(reaction_id=reaction_id, after=after, through=end, spans=tuple(force.spans(after, end)))


def find_matches(spark: SparkSession, store: str, lake: Path | str, plan: BackfillPlan) -> Iterator[FoundMatches]:
    """Yields the matches of a plan in batches."""
    source, searched = HistorySource.of(spark, store, lake), 0
    for after, through in plan.steps():
        frame = matches(source, plan, after, through)
        rows = iter(()) if frame is None else frame.sort(GLOBAL_SEQ).toLocalIterator()
        while hits := [_hit(plan, row) for row in islice(rows, ROWS)]:
            yield FoundMatches(hits, searched)
        searched += through - after
        yield FoundMatches((), searched)


def definitions_in(plan: BackfillPlan, after: int, through: int) -> Iterator[tuple[int, ActiveRange]]:
    """The definitions of a range, each with its index in the plan and the positions it applies to."""
    for which, span in enumerate(plan.spans):
        piece = ActiveRange(max(span.above, after), min(span.through, through), span.reaction)
        if piece.above < piece.through and _is_accepted(span.reaction.predicate_cel):
            yield which, piece


def entries_under(source: HistorySource, span: ActiveRange) -> DataFrame:
    """The entries that a definition is matched with, without those deeper than any reaction reads."""
    reaction = span.reaction
    query = HistoryQuery(
        pattern=reaction.subject_pattern, where=reaction.predicate_cel, after=span.above, through=span.through
    )
    return source.entries(query, source.positions(query)).filter(F.col(DEPTH) <= MAX_DEPTH)


def matches(source: HistorySource, plan: BackfillPlan, after: int, through: int) -> DataFrame | None:
    """The matches of a range; `older` counts the matches that debouncing merged into one."""
    pieces = definitions_in(plan, after, through)
    frames = [_matched(source, span).withColumn(WHICH, F.lit(which)) for which, span in pieces]
    return reduce(DataFrame.unionByName, frames) if frames else None


def _matched(source: HistorySource, span: ActiveRange) -> DataFrame:
    reaction = span.reaction
    matched = history(entries_under(source, span), reaction.subject_pattern, reaction.predicate_cel)
    counted = matched.withColumn(OLDER, F.lit(0).cast("bigint"))
    return _debounced(counted) if reaction.debounce_ms else counted


def _debounced(matched: DataFrame) -> DataFrame:
    """Keeps the newest match of each subject; a match at the depth limit is kept by itself, to become a dead task."""
    is_deep = F.col(DEPTH) == MAX_DEPTH
    newest = F.max_by(F.struct(*matched.drop(OLDER).columns), GLOBAL_SEQ).alias("newest")
    by_subject = matched.filter(~is_deep).groupBy(SUBJECT).agg(newest, (F.count("*") - 1).alias(OLDER))
    return by_subject.select("newest.*", OLDER).unionByName(matched.filter(is_deep))


def _is_accepted(where: str) -> bool:
    """A predicate that was accepted once and no longer compiles matches nothing."""
    try:
        Predicate(where)
    except UsageError:
        return False
    return True


def _hit(plan: BackfillPlan, row: Row) -> Match:
    reaction = plan.spans[row[WHICH]].reaction
    return Match(reaction, entry_of(row[name] for name in COLUMNS), row[PREVIOUS], row[OLDER])

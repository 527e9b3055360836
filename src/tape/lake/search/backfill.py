"""A backfill: the tasks that a reaction would have from the beginning, found with Spark and made where they miss."""

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
from tape.core.registration import REACTION, Span, reaction_history
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
    """Which positions are matched with which definition; it ends where the live matcher is."""

    reaction_id: str
    after: int
    through: int
    spans: tuple[Span, ...]

    def steps(self) -> Iterator[tuple[int, int]]:
        """Stretches in their order; where an entry stands for older ones the newest come first, and cover those.

        None is long, and none meets many definitions: what Spark makes of them grows faster than their number.
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
    """Some of the matches, and how far the search has come."""

    matches: Sequence[Match]
    searched: int


async def plan_backfill(
    store: Store, journal: Journal, reaction_id: str, after: int = 0, through: int | None = None
) -> BackfillPlan:
    """What a backfill has to look at; what comes after the reaction's cursor is left to the matcher."""
    record = await store.reactions.find(reaction_id)
    if record is None or record.is_removed:
        raise NotFound(f"there is no reaction {reaction_id!r}")
    told = journal.stream(run_id=system_run(reaction_id), follow=False)
    force = reaction_history([entry async for entry in told if entry.kind == REACTION])
    if force is None:
        raise NotFound(f"the journal has no registration of {reaction_id!r} any more")
    end = record.cursor if through is None else min(through, record.cursor)
    if end < after:
        raise UsageError(f"a backfill ends after it begins, and {end} is before {after}")
    return BackfillPlan(reaction_id=reaction_id, after=after, through=end, spans=tuple(force.spans(after, end)))


def find_matches(spark: SparkSession, store: str, lake: Path | str, plan: BackfillPlan) -> Iterator[FoundMatches]:
    """The matches of a plan, some at a time."""
    source, searched = HistorySource.of(spark, store, lake), 0
    for after, through in plan.steps():
        frame = matches(source, plan, after, through)
        rows = iter(()) if frame is None else frame.sort(GLOBAL_SEQ).toLocalIterator()
        while hits := [_hit(plan, row) for row in islice(rows, ROWS)]:
            yield FoundMatches(hits, searched)
        searched += through - after
        yield FoundMatches((), searched)


def definitions_in(plan: BackfillPlan, after: int, through: int) -> Iterator[tuple[int, Span]]:
    """The definitions of a stretch, each by its place in the plan and where it is in force."""
    for which, span in enumerate(plan.spans):
        piece = Span(max(span.above, after), min(span.through, through), span.reaction)
        if piece.above < piece.through and _is_accepted(span.reaction.predicate_cel):
            yield which, piece


def entries_under(source: HistorySource, span: Span) -> DataFrame:
    """What a definition is matched with; what lies too deep is no reaction's."""
    reaction = span.reaction
    asked = HistoryQuery(
        pattern=reaction.subject_pattern, where=reaction.predicate_cel, after=span.above, through=span.through
    )
    return source.entries(asked, source.position_range(asked)).filter(F.col(DEPTH) <= MAX_DEPTH)


def matches(source: HistorySource, plan: BackfillPlan, after: int, through: int) -> DataFrame | None:
    """What the definitions of a stretch match; `older` are those that one stands for."""
    pieces = definitions_in(plan, after, through)
    frames = [_matched(source, span).withColumn(WHICH, F.lit(which)) for which, span in pieces]
    return reduce(DataFrame.unionByName, frames) if frames else None


def _matched(source: HistorySource, span: Span) -> DataFrame:
    reaction = span.reaction
    matched = history(entries_under(source, span), reaction.subject_pattern, reaction.predicate_cel)
    counted = matched.withColumn(OLDER, F.lit(0).cast("bigint"))
    return _gathered(counted) if reaction.debounce_ms else counted


def _gathered(matched: DataFrame) -> DataFrame:
    """The newest of each subject, which stands for the older ones; what is too deep dies by itself."""
    is_deep = F.col(DEPTH) == MAX_DEPTH
    newest = F.max_by(F.struct(*matched.drop(OLDER).columns), GLOBAL_SEQ).alias("newest")
    by_subject = matched.filter(~is_deep).groupBy(SUBJECT).agg(newest, (F.count("*") - 1).alias(OLDER))
    return by_subject.select("newest.*", OLDER).unionByName(matched.filter(is_deep))


def _is_accepted(where: str) -> bool:
    """A predicate that was accepted once and no longer is matches nothing."""
    try:
        Predicate(where)
    except UsageError:
        return False
    return True


def _hit(plan: BackfillPlan, row: Row) -> Match:
    reaction = plan.spans[row[WHICH]].reaction
    return Match(reaction, entry_of(row[name] for name in COLUMNS), row[PREVIOUS], row[OLDER])

"""Reads the journal in pages; the connection appends."""

import json
import sys
from collections.abc import Sequence
from typing import Final, NamedTuple

from tape.core.errors import Corrupt, InvalidCursor, TapeError
from tape.core.event import Entry
from tape.core.fork import Segment
from tape.core.ids import Epoch, GlobalSeq, RunId, Seq
from tape.core.ports import AppendOutcome, Bounds, Page, RunPage
from tape.core.sequence import AppendRequest
from tape.core.subject import Pattern
from tape.core.term import Term
from tape.store.connection import Connection, Query, Row
from tape.store.heads import head_of
from tape.store.statements import statements

PAGE: Final = 512
PAGE_BYTES: Final = 4 << 20
WINDOW: Final = 20_000  # positions examined for one page of a pattern
COUNTED: Final = 200_000  # positions counted in one statement, 40 to 100 ms
OTHER_EPOCH: Final = 0  # not a position: an epoch began between a page and its count


class _Sql(NamedTuple):
    bounds: str
    after: str
    after_in_range: str
    after_of_subject: str
    count_between: str
    places_between: str
    run_after: str
    run_head: str
    segments: str
    floors: str
    terms: str


class Journal:
    """The journal of one database."""

    def __init__(self, connection: Connection, dialect: str, epoch: Epoch) -> None:
        self.epoch = epoch
        self._connection = connection
        self._sql = _Sql(**statements(dialect, "journal.sql"))
        self._bounds = Query(self._sql.bounds)

    async def append(self, requests: Sequence[AppendRequest]) -> Sequence[AppendOutcome]:
        outcomes = await self._connection.append(requests)
        for outcome in outcomes:
            if not isinstance(outcome, TapeError) and outcome:
                self.observe_epoch(outcome[-1].epoch)
        return outcomes

    async def wait(self, beyond: GlobalSeq) -> None:
        await self._connection.wait(beyond)

    async def bounds(self) -> Bounds:
        (((floor, head, _, epoch),),) = await self._connection.snapshot(self._bounds)
        self.observe_epoch(epoch)
        return Bounds(floor, head)

    async def terms(self) -> Sequence[Term]:
        (rows,) = await self._connection.snapshot(Query(self._sql.terms))
        return [Term(*row) for row in rows]

    async def read(self, after: GlobalSeq, *, pattern: Pattern | None = None) -> Page:
        query, through = self._after(after, pattern)
        known = self.epoch
        (((floor, head, changes, epoch),), rows) = await self._connection.snapshot(self._bounds, query)
        self._check(epoch, known)
        bounds = Bounds(floor, head)
        entries = intact(rows)
        is_cut = len(entries) < len(rows) or len(rows) == PAGE or sum(entry.weight for entry in entries) >= PAGE_BYTES
        scanned_to = entries[-1].global_seq if is_cut else max(after, min(through, bounds.head))
        start = max(after, bounds.floor - 1)  # below the floor there is a gap, and nothing is missing
        if is_everything(pattern):
            missing = first_missing(start, [entry.global_seq for entry in entries if entry.global_seq > start])
        else:
            missing = await self._missing(start, scanned_to, epoch)
        if missing == OTHER_EPOCH:
            return await self.read(after, pattern=pattern)
        if missing is not None:
            entries, scanned_to = before(missing, entries, start)
        if pattern is not None:
            entries = [entry for entry in entries if pattern.matches(entry.subject)]
        return Page(entries, GlobalSeq(scanned_to), bounds, changes, epoch)

    async def _missing(self, after: int, through: int, epoch: Epoch) -> int | None:
        """The first position that has no entry, found by counting.

        No entry is ever added below a position that was read, so counting later gives the same; entries that were
        trimmed meanwhile are below the floor of the count's own snapshot.
        """
        while after < through:
            end = min(after + COUNTED, through)
            between = {"after": after, "through": end}
            count = Query(self._sql.count_between, between)
            (((floor, _, _, now),), ((found,),)) = await self._connection.snapshot(self._bounds, count)
            if now != epoch:
                return OTHER_EPOCH
            if after + 1 < floor:
                after = min(floor - 1, through)
            elif found == end - after:
                after = end
            else:
                (rows,) = await self._connection.snapshot(
                    Query(self._sql.places_between, {**between, "limit": COUNTED})
                )
                return first_missing(after, [place for (place,) in rows]) or after + len(rows) + 1
        return None

    async def read_run(self, run_id: RunId, after: Seq, segments: Sequence[Segment] = ()) -> RunPage:
        queries = [self._bounds, Query(self._sql.run_head, {"run_id": run_id})]
        known = self.epoch
        (((floor, last, _, epoch),), head, found, *floors) = await self._connection.snapshot(
            *queries, *(self._of_segments(after, segments) if segments else self._of_run(run_id, after))
        )
        self._check(epoch, known)
        run = head_of(head[0]) if head else None
        return RunPage(intact(found), run, Bounds(floor, last), dict(floors[0]) if floors else {}, epoch)

    def _of_run(self, run_id: RunId, after: Seq) -> tuple[Query, ...]:
        return (Query(self._sql.run_after, {"run_id": run_id, "after": after, "limit": PAGE}, PAGE_BYTES),)

    def _of_segments(self, after: Seq, segments: Sequence[Segment]) -> tuple[Query, ...]:
        """A page of the segments, and the floors of the runs that own them."""
        through = after + PAGE
        cut = [(run_id, first, min(last or through, through)) for run_id, first, last in segments if first <= through]
        page = {"segments": json.dumps(cut), "limit": PAGE}
        owners = json.dumps([segment.run_id for segment in segments])
        return Query(self._sql.segments, page, PAGE_BYTES), Query(self._sql.floors, {"run_ids": owners})

    def observe_epoch(self, epoch: Epoch) -> None:
        """Remembers the newest epoch; answers may arrive out of order."""
        self.epoch = max(self.epoch, epoch)

    def _check(self, epoch: Epoch, known: Epoch) -> None:
        """Refuses an epoch below the one known before the query: the database is an older copy."""
        self.observe_epoch(epoch)
        if epoch < known:
            raise InvalidCursor(
                f"the journal is of epoch {epoch}, but {known} was here before: it is an older one; "
                "begin a new epoch with tape migrate --new-epoch"
            )

    def _after(self, after: GlobalSeq, pattern: Pattern | None) -> tuple[Query, int]:
        """The query of the next page, and the position through which it looks if it finds less than a page."""
        place: dict[str, object] = {"after": after, "limit": PAGE}
        if pattern is not None and pattern.literal is not None:
            return Query(self._sql.after_of_subject, {**place, "subject": pattern.literal}, PAGE_BYTES), sys.maxsize
        span = None if pattern is None else pattern.prefix_range()
        if span is None:
            return Query(self._sql.after, place, PAGE_BYTES), sys.maxsize
        through = min(after + WINDOW, sys.maxsize)
        window = {"through": through, "low": span[0], "high": span[1]}
        return Query(self._sql.after_in_range, {**place, **window}, PAGE_BYTES), through


def is_everything(pattern: Pattern | None) -> bool:
    """Whether the query of a page has no condition on subjects, so that its rows must be dense."""
    return pattern is None or pattern.prefix_range() is None


def first_missing(after: int, places: Sequence[int]) -> int | None:
    """The first position after `after` that is missing in an ascending list; None if it is dense."""
    if not places or places[-1] - after == len(places):
        return None
    return next(expected for expected, place in enumerate(places, after + 1) if place != expected)


def before(missing: int, entries: Sequence[Entry], start: int) -> tuple[list[Entry], int]:
    """The entries before a missing position, and the last position before it; `Corrupt` if there is none."""
    if missing == start + 1:
        raise Corrupt("it is missing", GlobalSeq(missing))
    return [entry for entry in entries if entry.global_seq < missing], missing - 1


def intact(rows: Sequence[Row]) -> list[Entry]:
    """The entries before the first one whose checksum is wrong; `Corrupt` if that is the first."""
    entries = [Entry._make(row) for row in rows]
    for place, entry in enumerate(entries):
        if not entry.is_intact:
            if place == 0:
                raise Corrupt("its stored bytes are not what was written", entry.global_seq)
            return entries[:place]
    return entries

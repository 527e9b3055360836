"""Reading the journal in pages; appending is the connection's own."""

import sys
from collections.abc import Sequence
from typing import Final, NamedTuple

from tape.core.errors import Corrupt, InvalidCursor
from tape.core.event import Entry
from tape.core.ids import Epoch, GlobalSeq, RunId, Seq
from tape.core.ports import Bounds, Outcome, Page, RunPage
from tape.core.run import Head
from tape.core.sequence import Request
from tape.core.subject import Pattern
from tape.store.connection import Connection, Query, Row
from tape.store.statements import statements

PAGE: Final = 512
PAGE_BYTES: Final = 4 << 20
WINDOW: Final = 20_000  # positions examined for a page of a pattern, so that a rare one cannot hold the reader


class _Sql(NamedTuple):
    bounds: str
    after: str
    after_in_range: str
    after_of_subject: str
    run_after: str
    run_head: str


class Journal:
    """The journal of one database."""

    def __init__(self, connection: Connection, dialect: str, epoch: Epoch) -> None:
        self.epoch = epoch
        self._connection = connection
        self._sql = _Sql(**statements(dialect, "journal.sql"))

    async def append(self, requests: Sequence[Request]) -> Sequence[Outcome]:
        return await self._connection.append(requests)

    async def wait(self, beyond: GlobalSeq) -> None:
        await self._connection.wait(beyond)

    async def bounds(self) -> Bounds:
        (((floor, head, _, _),),) = await self._connection.snapshot(Query(self._sql.bounds))
        return Bounds(floor, head)

    async def read(self, after: GlobalSeq, *, pattern: Pattern | None = None) -> Page:
        query, through = self._after(after, pattern)
        (((floor, head, changes, epoch),), rows) = await self._connection.snapshot(Query(self._sql.bounds), query)
        self._check(epoch)
        bounds = Bounds(floor, head)
        entries = _intact(rows)
        is_cut = len(entries) < len(rows) or len(rows) == PAGE or _weight(entries) >= PAGE_BYTES
        scanned_to = entries[-1].global_seq if is_cut else max(after, min(through, bounds.head))
        if pattern is not None:
            entries = [entry for entry in entries if pattern.matches(entry.subject)]
        return Page(entries, GlobalSeq(scanned_to), bounds, changes)

    async def read_run(self, run_id: RunId, after: Seq) -> RunPage:
        run = {"run_id": run_id}
        rows = Query(self._sql.run_after, {**run, "after": after, "limit": PAGE}, PAGE_BYTES)
        (((floor, last, _, epoch),), head, found) = await self._connection.snapshot(
            Query(self._sql.bounds), Query(self._sql.run_head, run), rows
        )
        self._check(epoch)
        return RunPage(_intact(found), Head(*head[0]) if head else None, Bounds(floor, last))

    def _check(self, epoch: Epoch) -> None:
        """A cursor means nothing in another epoch, and every cursor of this store is of the one it was opened in."""
        if epoch != self.epoch:
            raise InvalidCursor(f"the journal is of epoch {epoch}, not of {self.epoch}, in which this store was opened")

    def _after(self, after: GlobalSeq, pattern: Pattern | None) -> tuple[Query, int]:
        """How to read on, and up to where it looks if it finds less than a page."""
        place: dict[str, object] = {"after": after, "limit": PAGE}
        if pattern is not None and pattern.literal is not None:
            return Query(self._sql.after_of_subject, {**place, "subject": pattern.literal}, PAGE_BYTES), sys.maxsize
        span = None if pattern is None else pattern.prefix_range()
        if span is None:
            return Query(self._sql.after, place, PAGE_BYTES), sys.maxsize
        through = min(after + WINDOW, sys.maxsize)
        window = {"through": through, "low": span[0], "high": span[1]}
        return Query(self._sql.after_in_range, {**place, **window}, PAGE_BYTES), through


def _intact(rows: Sequence[Row]) -> list[Entry]:
    """The entries before the first one that is not what was written; if that is the first, its error."""
    entries = [Entry._make(row) for row in rows]
    for place, entry in enumerate(entries):
        if not entry.is_intact:
            if place == 0:
                raise Corrupt("its stored bytes are not what was written", entry.global_seq)
            return entries[:place]
    return entries


def _weight(entries: Sequence[Entry]) -> int:
    return sum(entry.weight for entry in entries)

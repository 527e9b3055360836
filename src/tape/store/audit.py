"""The audit: reads a whole journal and reports every fault in it."""

import re
from collections.abc import AsyncGenerator, Iterator, Sequence
from typing import Final, NamedTuple, Protocol

from tape.core.errors import Corrupt, Unavailable
from tape.core.event import Entry
from tape.core.ids import Epoch, GlobalSeq, RunId, Seq
from tape.core.ports import AuditPage, Bounds, Fault
from tape.core.term import Term
from tape.store.connection import Connection, Query, Row
from tape.store.statements import migrations, statements

PAGE: Final = 512
PAGE_BYTES: Final = 4 << 20
RUNS_PAGE: Final = 5_000  # rows of an index are short
MOST_BARE_HEADS: Final = 1_000

_UNREADABLE: Final = (Corrupt, Unavailable)
_in_an_index = re.compile(r"\brow (\d+) .*\bindex (?:sqlite_autoindex_tape_journal_|tape_journal_)").search


class _Sql(NamedTuple):
    bounds: str
    epoch: str
    terms: str
    after: str
    place: str
    runs_after: str
    run_head: str
    bare_heads: str
    check_file: str
    nth_place: str


class _Stage(Protocol):
    """One pass over the journal, page by page; `step` returns None at its end."""

    async def step(self) -> AuditPage | None: ...


class Audit:
    """Reports the faults of a journal; it needs the memory of one page, however long the journal is."""

    def __init__(self, connection: Connection, dialect: str) -> None:
        self._connection = connection
        self._sql = _Sql(**statements(dialect, "audit.sql"))
        self._applied = statements(dialect, "migrate.sql")["applied"]
        self._known = {number for number, _, _ in migrations(dialect)}

    async def unknown_steps(self) -> Sequence[int]:
        (rows,) = await self._connection.snapshot(Query(self._applied))
        return sorted({number for (number,) in rows} - self._known)

    async def pages(self) -> AsyncGenerator[AuditPage, None]:
        ((row,), ((epoch,),), terms) = await self._connection.snapshot(
            Query(self._sql.bounds), Query(self._sql.epoch), Query(self._sql.terms)
        )
        bounds = Bounds(*row)
        stages: tuple[_Stage, ...] = (
            _Entries(self._connection, self._sql, epoch, [Term(*term) for term in terms[1:]], bounds.head),
            _Runs(self._connection, self._sql, bounds),
            _File(self._connection, self._sql),
        )
        for stage in stages:
            while (page := await stage.step()) is not None:
                yield page


class _Entries:
    """Reads by position: positions are dense, time never falls, and every checksum is right."""

    def __init__(self, connection: Connection, sql: _Sql, epoch: Epoch, later: Sequence[Term], head: GlobalSeq) -> None:
        self._connection = connection
        self._sql = sql
        self._epoch = epoch
        self._later = later
        self._head = head
        self._after = 0
        self._expected = 0
        self._first: int | None = None
        self._ts_ms = 0
        self._epoch_before = 0

    async def step(self) -> AuditPage | None:
        if self._after >= self._head:
            return None
        try:
            faults = await self._page(self._head, PAGE)
        except _UNREADABLE:
            faults = await self._one_by_one(min(self._after + PAGE, self._head))
        start = self._after if self._first is None else self._first - 1
        return AuditPage("entries", self._after - start, self._head - start, faults)

    async def _page(self, through: int, limit: int) -> list[Fault]:
        place = {"after": self._after, "through": through, "limit": limit}
        ((bounds,), rows) = await self._connection.snapshot(
            Query(self._sql.bounds), Query(self._sql.after, place, PAGE_BYTES)
        )
        floor, _ = bounds
        faults = [fault for row in rows for fault in self._look(row, floor)]
        self._after = rows[-1][0] if rows else through
        return faults

    async def _one_by_one(self, through: int) -> list[Fault]:
        """Reads a page entry by entry, because one of its rows cannot be read."""
        faults = []
        for position in range(self._after + 1, through + 1):
            try:
                faults += await self._page(position, 1)
            except _UNREADABLE:
                faults.append(await self._unreadable(GlobalSeq(position)))
                self._after, self._expected = position, position + 1
        return faults

    async def _unreadable(self, position: GlobalSeq) -> Fault:
        try:
            ((row,),) = await self._connection.snapshot(Query(self._sql.place, {"global_seq": position}))
        except (*_UNREADABLE, ValueError):
            return Fault("it cannot be read", position)
        return Fault("it cannot be read", position, *row)

    def _look(self, row: Row, floor: GlobalSeq) -> Iterator[Fault]:
        entry = Entry._make(row)
        place = (entry.global_seq, entry.run_id, entry.seq)
        if self._first is None:
            self._first = entry.global_seq
        expected = max(self._expected, floor)
        if entry.global_seq > expected:
            yield Fault(f"{_span('position', expected, entry.global_seq - 1)} missing", GlobalSeq(expected))
        for reason in _wrongs(entry, self._ts_ms):
            yield Fault(reason, *place)
        if self._is_of_an_epoch(entry):
            self._epoch_before = entry.epoch
        else:
            yield Fault(f"its epoch is {entry.epoch}, the journal's is {self._epoch}", *place)
        for term in self._later:
            if self._is_of_an_epoch(entry) and (entry.global_seq >= term.first) != (entry.epoch >= term.epoch):
                yield Fault(f"its epoch is {entry.epoch}, but that of {term.epoch} began at {term.first}", *place)
        self._expected = entry.global_seq + 1
        self._ts_ms = entry.ts_ms if isinstance(entry.ts_ms, int) else 0

    def _is_of_an_epoch(self, entry: Entry) -> bool:
        """Whether its epoch is the journal's or an earlier one, and not below that of the entry before it."""
        return isinstance(entry.epoch, int) and self._epoch_before <= entry.epoch <= self._epoch


def _wrongs(entry: Entry, ts_ms: int) -> Iterator[str]:
    """The faults of an entry that follows one of this time."""
    try:
        if not entry.is_intact:
            yield "its stored bytes are not what was written"
        if entry.ts_ms < ts_ms:
            yield f"its time is {ts_ms - entry.ts_ms:,} ms before that of the entry before it"
    except (TypeError, AttributeError):  # a damaged header can turn text into a number
        yield "its stored bytes are not what was written"


class _Runs:
    """Reads run by run: seqs are dense from the floor to the head, and rise with positions."""

    def __init__(self, connection: Connection, sql: _Sql, bounds: Bounds) -> None:
        self._connection = connection
        self._sql = sql
        self._total = bounds.head - bounds.floor + 1
        self._done = 0
        self._is_over = False
        self._run_id = RunId("")
        self._seq = 0
        self._global_seq = 0
        self._floor: int | None = None
        self._last_seq = 0

    async def step(self) -> AuditPage | None:
        if self._is_over:
            return None
        try:
            faults = await self._page()
        except (*_UNREADABLE, TypeError):  # a damaged index page can also turn a seq into text
            self._is_over = True
            faults = [Fault("this run and those after it cannot be read by run", None, self._run_id or None)]
        return AuditPage("runs", min(self._done, self._total), self._total, faults)

    async def _page(self) -> list[Fault]:
        run = {"run_id": self._run_id}
        rows, heads, bare = await self._connection.snapshot(
            Query(self._sql.runs_after, {**run, "seq": self._seq, "limit": RUNS_PAGE}),
            Query(self._sql.run_head, run),
            Query(self._sql.bare_heads, {"limit": 0 if self._run_id else MOST_BARE_HEADS}),
        )
        faults = [Fault(f"{_span('seq', *head)} missing", None, run_id, head[0]) for run_id, *head in bare]
        for floor, last_seq in heads:  # of the run in which the page before ended, in this snapshot
            self._floor, self._last_seq = floor, last_seq
        for row in rows:
            if not self._follows(row):
                faults += self._look(row)
            _, self._seq, self._global_seq, _, _ = row
        self._done += len(rows)
        if len(rows) < RUNS_PAGE:
            self._is_over = True
            faults += self._end()
        return faults

    def _follows(self, row: Row) -> bool:
        """Whether the row is the expected one, as nearly all are."""
        run_id, seq, global_seq, _, _ = row
        return bool(run_id == self._run_id and seq == self._seq + 1 and global_seq > self._global_seq)

    def _look(self, row: Row) -> Iterator[Fault]:
        run_id, seq, global_seq, floor, last_seq = row
        if run_id != self._run_id:
            yield from self._end()
            self._run_id, self._seq, self._global_seq = run_id, (floor or 1) - 1, 0
            self._floor, self._last_seq = floor, last_seq
            if floor is None:
                yield Fault("its run has no head", global_seq, run_id, seq)
        yield from self._place(seq, global_seq)

    def _place(self, seq: Seq, global_seq: GlobalSeq) -> Iterator[Fault]:
        expected = max(self._seq + 1, self._floor or 1)
        if seq > expected:
            yield Fault(f"{_span('seq', expected, seq - 1)} missing", None, self._run_id, Seq(expected))
        if seq < expected:
            yield Fault(f"its run begins at seq {expected}", global_seq, self._run_id, seq)
        if global_seq <= self._global_seq:
            reason = f"it stands before seq {self._seq}, which is at {self._global_seq}"
            yield Fault(reason, global_seq, self._run_id, seq)

    def _end(self) -> Iterator[Fault]:
        """Checks the head of a run after its last entry."""
        if self._floor is None:
            return
        expected = max(self._seq + 1, self._floor)
        if expected <= self._last_seq:
            yield Fault(f"{_span('seq', expected, self._last_seq)} missing", None, self._run_id, Seq(expected))
        if self._seq > self._last_seq:
            reason = f"its run's head says that seq {self._last_seq} is the last"
            yield Fault(reason, GlobalSeq(self._global_seq), self._run_id, Seq(self._seq))


class _File:
    """Runs the database's own check: damaged pages, and indexes that do not agree with their tables."""

    def __init__(self, connection: Connection, sql: _Sql) -> None:
        self._connection = connection
        self._sql = sql
        self._steps = 0

    async def step(self) -> AuditPage | None:
        self._steps += 1
        if self._steps == 1:
            return AuditPage("file", 0, 1, ())  # the check takes a while and reports no progress
        return AuditPage("file", 1, 1, await self._check()) if self._steps == 2 else None

    async def _check(self) -> Sequence[Fault]:
        try:
            (rows,) = await self._connection.snapshot(Query(self._sql.check_file))
        except _UNREADABLE as error:
            return [Fault(str(error))]
        messages = [line for (text,) in rows for line in str(text).splitlines() if line != "ok"]
        return [await self._fault(message) for message in messages]

    async def _fault(self, message: str) -> Fault:
        found = _in_an_index(message)
        if found is None:
            return Fault(message)
        try:
            (rows,) = await self._connection.snapshot(Query(self._sql.nth_place, {"rows_before": int(found[1]) - 1}))
        except _UNREADABLE:
            return Fault(message)
        return Fault(f"the index does not have it ({message})", *rows[0]) if rows else Fault(message)


def _span(noun: str, first: int, last: int) -> str:
    return f"{noun} {first} is" if first == last else f"{noun}s {first} to {last} are"

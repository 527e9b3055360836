"""The tables of a cold file: runs, their events by seq, and where history was gone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final, NamedTuple

import duckdb

from tape.core.envelope import EventEnvelope
from tape.core.errors import BrokerOverflowError, Corrupt
from tape.core.event import OVERHEAD, Entry
from tape.core.ids import Epoch, GlobalSeq, RunId, Seq
from tape.core.run import RunMeta
from tape.store.duckdb.connection import translated
from tape.store.statements import statements

PAGE: Final = 2_000
PAGE_BYTES: Final = 4 << 20


class EventRow(NamedTuple):
    """An entry of a run; the positions of the journal are None where they are not known."""

    run_id: RunId
    global_seq: GlobalSeq | None
    seq: Seq
    ts_ms: int | None
    depth: int | None
    epoch: Epoch | None
    crc: int
    owner_run_id: RunId
    kind: str
    type: str
    subject: str
    schema_version: int
    event_id: str
    cause: GlobalSeq | None
    trace_id: str
    span_id: str
    parent_span_id: str
    attributes_json: str
    payload_json: str | None
    payload_bytes: bytes | None

    @classmethod
    def of_entry(cls, run_id: RunId, entry: Entry) -> EventRow:
        return cls(run_id, *entry)

    @classmethod
    def of_envelope(cls, envelope: EventEnvelope) -> EventRow:
        event = envelope.event
        return cls(envelope.run_id, None, envelope.seq, None, None, None, event.crc, *event.content)

    @property
    def entry(self) -> Entry:
        """The entry; without positions of the journal only its event is meaningful."""
        return tuple.__new__(Entry, self[1:])

    @property
    def weight(self) -> int:
        """Its approximate size in memory."""
        return len(self.payload_json or self.payload_bytes or "") + OVERHEAD


class Gap(NamedTuple):
    """Seqs that were trimmed before they could be written, both ends included."""

    run_id: RunId
    first_seq: Seq
    last_seq: Seq


class Last(NamedTuple):
    """The last written entry of a run."""

    seq: Seq = Seq(0)
    event_id: str = ""
    epoch: Epoch | None = None


class ColdRun(NamedTuple):
    """A run in its file; complete if its end was written, whole if it has no gap.

    `epoch` is that of its last entry, None if it has no positions of a journal.
    """

    run_id: RunId
    meta: RunMeta
    closed_seq: Seq | None
    last_seq: Seq
    n_events: int
    epoch: Epoch | None = None

    @property
    def is_complete(self) -> bool:
        return self.closed_seq is not None

    @property
    def is_whole(self) -> bool:
        return self.n_events == self.last_seq


class _Sql(NamedTuple):
    create_events: str
    create_gaps: str
    create_runs: str
    insert_events: str
    insert_gap: str
    begin_run: str
    end_run: str
    select_runs: str
    select_last: str
    select_sizes: str
    select_events: str
    select_gap: str


class Events:
    """The statements of a cold file; every call blocks."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._sql = _Sql(**statements("duckdb", "events.sql"))

    def create(self) -> None:
        with translated():
            for statement in (self._sql.create_events, self._sql.create_gaps, self._sql.create_runs):
                self._connection.execute(statement)

    def close(self) -> None:
        with translated():
            self._connection.close()

    def begin(self, run_id: RunId, meta: RunMeta) -> Last:
        """Records that a run is being written, and returns where to continue."""
        self._execute(self._sql.begin_run, run_id=run_id, **asdict(meta))
        return self.last(run_id)

    def last(self, run_id: RunId) -> Last:
        found = self._execute(self._sql.select_last, run_id=run_id)
        return Last(*found[0]) if found else Last()

    def insert(self, rows: Sequence[EventRow]) -> None:
        """Writes rows, all or none; in the caller's transaction if there is one."""
        if rows:
            columns = map(list, zip(*rows, strict=True))
            self._execute(self._sql.insert_events, **dict(zip(EventRow._fields, columns, strict=True)))

    def write(self, rows: Sequence[EventRow], gaps: Sequence[Gap]) -> None:
        """Writes rows and gaps, all or none."""
        with translated():
            self._connection.begin()
        try:
            self.insert(rows)
            for gap in gaps:
                self._execute(self._sql.insert_gap, **gap._asdict())
        except BaseException:
            self._connection.rollback()
            raise
        with translated():
            self._connection.commit()

    def end(self, run_id: RunId, closed_seq: Seq) -> None:
        """Records that a run was written to its end."""
        self._execute(self._sql.end_run, run_id=run_id, closed_seq=closed_seq)

    def runs(self) -> list[ColdRun]:
        return [_cold_run(*row) for row in self._execute(self._sql.select_runs)]

    def page(self, run_id: RunId, from_seq: Seq) -> list[EventRow]:
        """The rows after a seq up to the first gap, bounded in rows and bytes; raises if the gap comes first."""
        sizes = self._execute(self._sql.select_sizes, run_id=run_id, from_seq=from_seq, limit=PAGE)
        if not sizes or sizes[0][0] > from_seq:
            self._check_gap(run_id, from_seq, is_end=not sizes)
        last_seq = _page_end(from_seq, sizes)
        return [
            EventRow(*row)
            for row in self._execute(self._sql.select_events, run_id=run_id, first_seq=from_seq, last_seq=last_seq)
        ]

    def _check_gap(self, run_id: RunId, seq: Seq, *, is_end: bool) -> None:
        [(through,)] = self._execute(self._sql.select_gap, run_id=run_id, seq=seq)
        if through is not None:
            raise BrokerOverflowError(run_id, seq, through + 1)
        if not is_end:
            raise Corrupt(f"{seq} is missing in run {run_id!r}, and no gap is noted there")

    def _execute(self, statement: str, **parameters: object) -> list[tuple[Any, ...]]:
        with translated():
            return self._connection.execute(statement, parameters or None).fetchall()


def _page_end(from_seq: Seq, sizes: Sequence[tuple[Seq, int]]) -> Seq:
    """The last seq before a gap or the bound of the page, which has at least one entry."""
    budget = PAGE_BYTES
    last_seq = Seq(from_seq - 1)
    for seq, size in sizes:
        if seq != last_seq + 1 or (budget < size and seq != from_seq):
            break
        last_seq = seq
        budget -= size
    return last_seq


def _cold_run(run_id: RunId, label: str, started_at: str, app: str, user: str, session: str, *rest: Any) -> ColdRun:
    meta = RunMeta(label=label, started_at=started_at, app=app, user=user, session=session)
    return ColdRun(run_id, meta, *rest)

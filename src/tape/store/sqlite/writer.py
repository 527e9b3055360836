"""The append: requests are judged and written under the file's one write lock."""

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from itertools import count
from typing import Final, NamedTuple, assert_never

from tape.core.event import Entry
from tape.core.ids import Epoch, GlobalSeq, RunId, Seq
from tape.core.ports import AppendOutcome
from tape.core.run import Head
from tape.core.sequence import (
    Accepted,
    AppendDecision,
    AppendRequest,
    AppendVerdict,
    Cell,
    CellId,
    KeyRecord,
    Known,
    Refused,
    Replayed,
    decide,
)
from tape.store.clock import now_ms
from tape.store.heads import head_of, lineage_json
from tape.store.statements import statements

CACHED_RUNS: Final = 10_000


class _Sql(NamedTuple):
    meta: str
    head: str
    key: str
    cell: str
    depth: str
    between: str
    insert_entry: str
    put_head: str
    move_head: str
    insert_run: str
    insert_key: str
    put_cell: str
    count_change: str
    data_version: str
    last_gone: str
    delete_run_below: str
    raise_floor: str


class Writer:
    """Appends on a connection, inside the transaction its owner has begun.

    While `data_version` does not change nobody else has written, so the cached heads are right.
    """

    def __init__(self, keep_per_run: int | None = None, clock: Callable[[], int] = now_ms) -> None:
        self._sql = _Sql(**statements("sqlite", "append.sql"))
        self._keep_per_run = keep_per_run
        self._clock = clock
        self._heads: dict[RunId, Head] = {}
        self._version: int | None = None
        self._epoch = Epoch(0)
        self.head = GlobalSeq(0)
        self._ts_ms = 0

    def forget(self) -> None:
        """Drops the cached heads: a transaction was rolled back, or other statements wrote on this connection."""
        self._version = None

    def append(self, connection: sqlite3.Connection, requests: Sequence[AppendRequest]) -> list[AppendOutcome]:
        """Writes what `decide` accepts. If the transaction does not commit, `forget` must follow."""
        self._refresh(connection)
        known = self._known(connection, requests)
        decision = decide(requests, known)
        entries = [self._entries(*judged, known.ts_ms) for judged in zip(requests, decision.verdicts, strict=True)]
        self._write(connection, [entry for group in entries for entry in group], decision, known)
        self._heads.update(decision.heads)
        self.head, self._ts_ms = decision.head, known.ts_ms
        return [self._outcome(connection, *judged) for judged in zip(requests, decision.verdicts, entries, strict=True)]

    def _refresh(self, connection: sqlite3.Connection) -> None:
        (version,) = connection.execute(self._sql.data_version).fetchone()
        if version != self._version or len(self._heads) > CACHED_RUNS:
            self._heads.clear()
            self._epoch, self.head, self._ts_ms = connection.execute(self._sql.meta).fetchone()
            self._version = version

    def _known(self, connection: sqlite3.Connection, requests: Sequence[AppendRequest]) -> Known:
        keys: dict[str, KeyRecord] = {}
        cells: dict[CellId, int] = {}
        depths: dict[GlobalSeq, int] = {}
        for request in requests:
            for run_id in request.runs:
                self._find_head(connection, run_id)
            if request.fork is not None:
                self._find_head(connection, request.fork.parent_run_id)
            if request.key is not None:
                for digest, first, seqs, ts_ms in connection.execute(self._sql.key, (request.key,)):
                    keys[request.key] = KeyRecord(digest, first, tuple(json.loads(seqs)), ts_ms)
            for change in request.cells:
                cells.update((change.id, version) for (version,) in connection.execute(self._sql.cell, change.id))
            for cause in {event.cause for event in request.events if event.cause is not None}:
                depths.update((cause, depth) for (depth,) in connection.execute(self._sql.depth, (cause,)))
        return Known(self.head, max(self._clock(), self._ts_ms), self._heads, keys, cells, depths)

    def _find_head(self, connection: sqlite3.Connection, run_id: RunId) -> None:
        if run_id not in self._heads:
            for row in connection.execute(self._sql.head, (run_id,)):
                self._heads[run_id] = head_of(row)

    def _entries(self, request: AppendRequest, verdict: AppendVerdict, ts_ms: int) -> list[Entry]:
        if not isinstance(verdict, Accepted):
            return []
        places = zip(count(verdict.first), request.events, verdict.seqs, verdict.depths)
        return [event.at(place, seq, ts_ms, depth, self._epoch) for place, event, seq, depth in places]

    def _write(
        self, connection: sqlite3.Connection, entries: list[Entry], decision: AppendDecision, known: Known
    ) -> None:
        connection.executemany(self._sql.insert_entry, map(tuple, entries))  # a plain tuple is bound faster
        for run_id, head in decision.heads.items():
            if run_id not in known.heads:
                fork = decision.forks.get(run_id, (None, None))
                connection.execute(self._sql.insert_run, (run_id, known.ts_ms, *fork))
            decision.heads[run_id] = self._trimmed(connection, run_id, head, known.ts_ms)
        goes_on = {run_id for run_id in decision.heads if (before := known.heads.get(run_id)) and before.is_open}
        connection.executemany(self._sql.move_head, _moved_rows(decision.heads, goes_on))
        if len(goes_on) < len(decision.heads):
            connection.executemany(self._sql.put_head, _head_rows(decision, goes_on, known.ts_ms))
        if decision.keys:
            connection.executemany(self._sql.insert_key, _key_rows(decision.keys))
        if decision.cells:
            connection.executemany(self._sql.put_cell, _cell_rows(decision.cells))

    def _trimmed(self, connection: sqlite3.Connection, run_id: RunId, head: Head, ts_ms: int) -> Head:
        """Deletes what exceeds the entries that a run may keep, and raises the journal's floor above it."""
        if self._keep_per_run is None or head.last_seq - head.floor < self._keep_per_run:
            return head
        floor = Seq(head.last_seq - self._keep_per_run + 1)
        (gone,) = connection.execute(self._sql.last_gone, (run_id, floor)).fetchone()
        connection.execute(self._sql.raise_floor, (gone or 0, ts_ms))
        connection.execute(self._sql.delete_run_below, (run_id, floor))
        return replace(head, floor=floor)

    def _outcome(
        self, connection: sqlite3.Connection, request: AppendRequest, verdict: AppendVerdict, entries: list[Entry]
    ) -> AppendOutcome:
        match verdict:
            case Accepted():
                return entries
            case Refused(error):
                return error
            case Replayed(record):
                return self._stored(connection, request, record)
            case _:
                assert_never(verdict)

    def _stored(self, connection: sqlite3.Connection, request: AppendRequest, record: KeyRecord) -> list[Entry]:
        """The entries that a request wrote the first time, or its own events if those were trimmed."""
        last = record.first + len(record.seqs) - 1
        stored = [Entry._make(row) for row in connection.execute(self._sql.between, (record.first, last))]
        return stored if len(stored) == len(record.seqs) else record.entries(request.events, self._epoch)


def _moved_rows(heads: Mapping[RunId, Head], goes_on: Set[RunId]) -> Iterator[tuple[object, ...]]:
    for run_id in goes_on:
        head = heads[run_id]
        yield head.last_seq, head.floor, head.content_type, run_id


def _head_rows(decision: AppendDecision, goes_on: Set[RunId], ts_ms: int) -> Iterator[tuple[object, ...]]:
    for run_id in decision.heads.keys() - goes_on:
        head, fork = decision.heads[run_id], decision.forks.get(run_id)
        place = (head.last_seq, head.closed_seq, head.floor, head.opened_seq, head.content_type)
        yield run_id, *place, fork and fork.at_seq, lineage_json(head.lineage), ts_ms


def _key_rows(keys: Mapping[str, KeyRecord]) -> Iterator[tuple[object, ...]]:
    for key, record in keys.items():
        yield key, record.digest, record.first, json.dumps(record.seqs), record.ts_ms


def _cell_rows(cells: Mapping[CellId, Cell]) -> Iterator[tuple[object, ...]]:
    for cell_id, cell in cells.items():
        yield *cell_id, cell.version, cell.status, cell.due_at_ms, cell.state_json, cell.app, cell.kind, cell.place

"""Appends a batch of rows as events, each once, in parts of one transaction each."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any, Final

from tape.core import codec
from tape.core.errors import Conflict, TapeError, UsageError, quoted
from tape.core.event import NO_TRACE, Event, Trace, check_producer
from tape.core.ids import is_id
from tape.core.ports import Store
from tape.core.sequence import AppendRequest, Cell, CellChange, CellId, split_requests

MOST_ROWS: Final = 20_000
MOST_BYTES: Final = 64 << 20
LEDGER: Final = "sink"
DIGEST_BYTES: Final = 12  # of a row's digest are stored, to recognise the row when the batch is retried
NEEDED: Final = ("run_id", "payload_json")
OPTIONAL: Final = "type subject schema_version event_id cause trace_id span_id parent_span_id attributes_json".split()


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkBatch:
    """The events that a sink appends under one number; the next number comes only after this batch is complete."""

    sink_id: str
    number: int
    events: Sequence[Event]

    def __post_init__(self) -> None:
        if not is_id(self.sink_id):
            raise UsageError(f"sinkId has the form of a run_id, not {quoted(self.sink_id)}")

    @property
    def digest(self) -> str:
        """A digest of the events that does not depend on their order, because retried tasks may finish in another."""
        return sha256(b"".join(sorted(map(_digest, self.events)))).hexdigest()

    @property
    def cell_id(self) -> CellId:
        return CellId(LEDGER, self.sink_id)

    def part_id(self, part: int) -> CellId:
        """The cell with the digests of a part; the next batch overwrites it."""
        return CellId(LEDGER, f"{self.sink_id}:{part}")

    def key(self, part: int, place: int) -> str:
        """The idempotency key of a request; a retried batch has the same keys."""
        key = f"sink:{self.sink_id}:{self.number}"
        if part:
            return f"{key}:{part}.{place}"
        return f"{key}:{place}" if place else key


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkProgress:
    """The last batch of a sink: its number and digest, how many parts are appended, and how many rows are left."""

    batch: int
    rows: int
    sha256: str
    parts: int = 0
    left: int = 0


async def append_batch(store: Store, batch: SinkBatch) -> bool:
    """Appends the missing parts of a batch; returns False if the batch was complete already.

    A part is one transaction. A retried batch, in any order of rows, continues after the parts that are appended.
    """
    is_new, digest = False, batch.digest
    known, left = -1, list(batch.events)
    while batch.events:
        found = await _read(store, batch.cell_id)
        parts = _appended_parts(batch, found, digest)
        if parts is None:
            break
        if parts != known:  # another process has appended parts, before this one or concurrently
            left = await _left(store, batch, parts)
        part = _first_part(left)
        try:
            await _append_part(store, batch, digest, found, parts, part, len(left) - len(part))
        except Conflict:
            if await _read(store, batch.cell_id) == found:
                raise  # no other process appended: the batch itself is in conflict
        else:
            is_new, known, left = True, parts + 1, left[len(part) :]
    return is_new


async def _append_part(
    store: Store, batch: SinkBatch, digest: str, found: Cell | None, parts: int, part: list[Event], left: int
) -> None:
    """Appends one part and the new progress of the batch in one transaction."""
    now = SinkProgress(batch=batch.number, rows=len(batch.events), sha256=digest, parts=parts + 1, left=left)
    changes = [_change(batch.cell_id, found, json.dumps(asdict(now)))]
    if left:
        part_id = batch.part_id(parts)
        digests = b64encode(b"".join(_digest(event)[:DIGEST_BYTES] for event in part)).decode()
        changes.append(
            _change(part_id, await _read(store, part_id), json.dumps({"batch": batch.number, "rows": digests}))
        )
    async with store.transaction() as transaction:
        transaction.append(
            AppendRequest(cells=tuple(changes))
        )  # a request of its own, because the events may fill theirs
        for place, events in enumerate(split_requests(part)):
            transaction.append(AppendRequest(events=events, key=batch.key(parts, place), opens=True))


def _appended_parts(batch: SinkBatch, found: Cell | None, digest: str) -> int | None:
    """How many parts of a batch are appended; None if all are. Raises Conflict for another batch."""
    last = None if found is None else SinkProgress(**json.loads(found.state_json))
    if last is None or (batch.number > last.batch and not last.left):
        return 0
    if (last.batch, last.rows, last.sha256) == (batch.number, len(batch.events), digest):
        return last.parts if last.left else None
    raise Conflict(
        f"sink {batch.sink_id!r} has appended batch {last.batch} already, and batch {batch.number} is not that one "
        "again; a query that starts over, or whose rows are others when it reads them again, needs another sinkId"
    )


async def _left(store: Store, batch: SinkBatch, parts: int) -> list[Event]:
    """The rows of a batch that are in none of its first parts, in order."""
    cells = await store.cells.read([batch.part_id(part) for part in range(parts)])
    done: Counter[bytes] = Counter()
    for cell in cells.values():
        digests = b64decode(json.loads(cell.state_json)["rows"])
        done.update(digests[place : place + DIGEST_BYTES] for place in range(0, len(digests), DIGEST_BYTES))
    left = []
    for event in batch.events:
        digest = _digest(event)[:DIGEST_BYTES]
        if done[digest]:
            done[digest] -= 1
        else:
            left.append(event)
    return left


def _first_part(events: Sequence[Event]) -> list[Event]:
    """As many of the first events as one transaction may hold, at least one."""
    part: list[Event] = []
    size = 0
    for event in events[:MOST_ROWS]:
        size += event.size
        if part and size > MOST_BYTES:
            break
        part.append(event)
    return part


def _digest(event: Event) -> bytes:
    return AppendRequest(events=(event,)).digest


async def _read(store: Store, cell_id: CellId) -> Cell | None:
    return (await store.cells.read([cell_id])).get(cell_id)


def _change(cell_id: CellId, found: Cell | None, state_json: str) -> CellChange:
    return CellChange(id=cell_id, seen=0 if found is None else found.version, status="done", state_json=state_json)


def check_columns(columns: Sequence[str]) -> None:
    """Raises UsageError for a column that events do not have, and for a missing one."""
    for column in columns:
        if column not in (*NEEDED, *OPTIONAL):
            known = ", ".join((*NEEDED, *OPTIONAL))
            raise UsageError(f"an event has no column {quoted(column)}; there are {known}")
    for column in NEEDED:
        if column not in columns:
            raise UsageError(f"the column {column} is missing")


def events_of(rows: Iterable[Mapping[str, Any]]) -> list[Event]:
    """Turns rows into events; raises UsageError with the number of the first invalid row."""
    events = []
    for number, row in enumerate(rows, 1):
        try:
            events.append(_event({name: value for name, value in row.items() if value is not None}))
        except TapeError as error:
            raise UsageError(f"row {number} of the batch is no event: {error}") from error
    return events


def _event(row: Mapping[str, Any]) -> Event:
    fields = dict(row)
    trace = Trace(*(fields.pop(name, "") for name in ("trace_id", "span_id", "parent_span_id")))
    attributes = codec.parse_map(fields.pop("attributes_json", "{}"))
    payload = codec.decode(fields.pop("payload_json", ""))
    event = Event(**fields, payload=payload, attributes=attributes, trace=None if trace == NO_TRACE else trace)
    check_producer(event)
    return event

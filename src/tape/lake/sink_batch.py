"""A batch of rows becomes events, each at most once, in parts of one transaction each."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any, Final

from tape.core import codec
from tape.core.errors import Conflict, TapeError, UsageError, quoted
from tape.core.event import NO_TRACE, Event, Trace, check_producer
from tape.core.ids import is_id
from tape.core.ports import Store
from tape.core.sequence import MAX_BYTES, MAX_EVENTS, Cell, CellChange, CellId, Request

MOST_ROWS: Final = 20_000
MOST_BYTES: Final = 64 << 20
LEDGER: Final = "sink"
DIGEST_BYTES: Final = 12  # of a row's digest are kept to know it again in the rest of its batch
NEEDED: Final = ("run_id", "payload_json")
OPTIONAL: Final = "type subject schema_version event_id cause trace_id span_id parent_span_id attributes_json".split()


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkBatch:
    """What a sink appends under one number; numbers rise, and the next one comes only after this one is in."""

    sink_id: str
    number: int
    events: Sequence[Event]

    def __post_init__(self) -> None:
        if not is_id(self.sink_id):
            raise UsageError(f"sinkId names what writes, like a run_id does, and not {quoted(self.sink_id)}")

    @property
    def digest(self) -> str:
        """What is in it, whatever the order: tasks that run again may end in another one."""
        return sha256(b"".join(sorted(map(_digest, self.events)))).hexdigest()

    @property
    def cell_id(self) -> CellId:
        return CellId(LEDGER, self.sink_id)

    def part_id(self, part: int) -> CellId:
        """Where it is kept what was in a part, until the next batch has a part of that number."""
        return CellId(LEDGER, f"{self.sink_id}:{part}")

    def key(self, part: int, place: int) -> str:
        """The key of a request, which is the same however often the batch comes."""
        key = f"sink:{self.sink_id}:{self.number}"
        if part:
            return f"{key}:{part}.{place}"
        return f"{key}:{place}" if place else key


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkProgress:
    """The last batch of a sink: its number and contents, how many parts of it are in, and how many rows are not."""

    batch: int
    rows: int
    sha256: str
    parts: int = 0
    left: int = 0


async def append_batch(store: Store, batch: SinkBatch) -> bool:
    """Appends what is missing of a batch, part by part; the answer is no if all of it was in already.

    A part is one transaction. A batch that comes again, in whatever order, goes on after the parts that are in.
    """
    is_new, digest = False, batch.digest
    known, left = -1, list(batch.events)
    while batch.events:
        found = await _read(store, batch.cell_id)
        parts = _parts_in(batch, found, digest)
        if parts is None:
            break
        if parts != known:  # somebody else has appended some: a process before this one, or one beside it
            left = await _left(store, batch, parts)
        part = _first_part(left)
        try:
            await _append_part(store, batch, digest, found, parts, part, len(left) - len(part))
        except Conflict:
            if await _read(store, batch.cell_id) == found:
                raise  # nobody was faster: it is the batch that is in conflict
        else:
            is_new, known, left = True, parts + 1, left[len(part) :]
    return is_new


async def _append_part(
    store: Store, batch: SinkBatch, digest: str, found: Cell | None, parts: int, part: list[Event], left: int
) -> None:
    """Some rows in one transaction, with what is then known of the batch."""
    now = SinkProgress(batch=batch.number, rows=len(batch.events), sha256=digest, parts=parts + 1, left=left)
    changes = [_change(batch.cell_id, found, json.dumps(asdict(now)))]
    if left:
        part_id = batch.part_id(parts)
        said = b64encode(b"".join(_digest(event)[:DIGEST_BYTES] for event in part)).decode()
        changes.append(_change(part_id, await _read(store, part_id), json.dumps({"batch": batch.number, "rows": said})))
    async with store.transaction() as transaction:
        transaction.append(Request(cells=tuple(changes)))  # apart from events, which may fill a request by themselves
        for place, events in enumerate(split_into_requests(part)):
            transaction.append(Request(events=events, key=batch.key(parts, place), opens=True))


def _parts_in(batch: SinkBatch, found: Cell | None, digest: str) -> int | None:
    """How many parts of a batch are in; None if all of it is. An older batch cannot be Spark's."""
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
    """The rows of a batch that are in none of its first parts, in their order."""
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
    """As many of the first events as one transaction may have; one is always given."""
    part: list[Event] = []
    size = 0
    for event in events[:MOST_ROWS]:
        size += event.size
        if part and size > MOST_BYTES:
            break
        part.append(event)
    return part


def _digest(event: Event) -> bytes:
    return Request(events=(event,)).digest


async def _read(store: Store, cell_id: CellId) -> Cell | None:
    return (await store.cells.read([cell_id])).get(cell_id)


def _change(cell_id: CellId, found: Cell | None, state_json: str) -> CellChange:
    return CellChange(id=cell_id, seen=0 if found is None else found.version, status="done", state_json=state_json)


def check_columns(columns: Sequence[str]) -> None:
    """Refuses what would be lost, and asks for what is missing."""
    for column in columns:
        if column not in (*NEEDED, *OPTIONAL):
            known = ", ".join((*NEEDED, *OPTIONAL))
            raise UsageError(f"an event has no column {quoted(column)}; there are {known}")
    for column in NEEDED:
        if column not in columns:
            raise UsageError(f"the column {column} is missing")


def events_of(rows: Iterable[Mapping[str, Any]]) -> list[Event]:
    """Rows as events; one that is none fails them all and is named."""
    events = []
    for number, row in enumerate(rows, 1):
        try:
            events.append(_event({name: value for name, value in row.items() if value is not None}))
        except TapeError as error:
            raise UsageError(f"row {number} of the batch is no event: {error}") from error
    return events


def _event(row: Mapping[str, Any]) -> Event:
    said = dict(row)
    trace = Trace(*(said.pop(name, "") for name in ("trace_id", "span_id", "parent_span_id")))
    attributes = codec.parse_map(said.pop("attributes_json", "{}"))
    payload = codec.decode(said.pop("payload_json", ""))
    event = Event(**said, payload=payload, attributes=attributes, trace=None if trace == NO_TRACE else trace)
    check_producer(event)
    return event


def split_into_requests(events: Sequence[Event]) -> Iterator[tuple[Event, ...]]:
    """As many events as a request may hold, and then again."""
    part: list[Event] = []
    size = 0
    for event in events:
        if part and (len(part) == MAX_EVENTS or size + event.size > MAX_BYTES - MAX_EVENTS):
            yield tuple(part)
            part, size = [], 0
        part.append(event)
        size += event.size
    yield tuple(part)

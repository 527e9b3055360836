"""A batch of rows becomes events, all in one transaction and at most once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

from tape.core import codec
from tape.core.errors import Conflict, TapeError, TooLarge, UsageError, shown
from tape.core.event import NO_TRACE, Event, Trace, check_producer
from tape.core.ids import is_id
from tape.core.ports import Store
from tape.core.sequence import MAX_BYTES, MAX_EVENTS, Cell, CellChange, CellId, Request

MOST_ROWS: Final = 20_000
MOST_BYTES: Final = 64 << 20
LEDGER: Final = "sink"
NEEDED: Final = ("run_id", "payload_json")
OPTIONAL: Final = "type subject schema_version event_id cause trace_id span_id parent_span_id attributes_json".split()


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What a sink appends at once; its number rises, and the next one comes only after this one is in."""

    sink_id: str
    number: int
    events: Sequence[Event]

    def __post_init__(self) -> None:
        if not is_id(self.sink_id):
            raise UsageError(f"sinkId names what writes, like a run_id does, and not {shown(self.sink_id)}")
        check_rows(len(self.events))
        if sum(event.size for event in self.events) > MOST_BYTES:
            raise TooLarge(f"a batch is at most {MOST_BYTES:,} bytes of payload; lower maxRowsPerTrigger")

    @property
    def key(self) -> str:
        return f"sink:{self.sink_id}:{self.number}"

    @property
    def state_json(self) -> str:
        """Which batch it is and what is in it, whatever the order: tasks that run again may end in another one."""
        parts = sorted(Request(events=(event,)).digest for event in self.events)
        said = {"batch": self.number, "rows": len(parts), "sha256": sha256(b"".join(parts)).hexdigest()}
        return json.dumps(said)

    def requests(self, seen: int, state_json: str) -> Iterator[Request]:
        """The events in their order, in requests that are for one transaction; the first says which batch this was."""
        change = CellChange(id=self.cell_id, seen=seen, status="done", state_json=state_json)
        for place, events in enumerate(cut(self.events)):
            key = self.key if place == 0 else f"{self.key}:{place}"
            yield Request(events=events, cells=(change,) if place == 0 else (), key=key, opens=True)

    @property
    def cell_id(self) -> CellId:
        return CellId(LEDGER, self.sink_id)


def check_rows(count: int) -> None:
    if count > MOST_ROWS:
        raise TooLarge(f"a batch is at most {MOST_ROWS:,} rows, not {count:,}; set or lower maxRowsPerTrigger")


async def append_batch(store: Store, batch: Batch) -> bool:
    """Appends a batch, unless it is in already: then nothing is appended, and the answer is no."""
    if not batch.events:
        return False
    state_json = batch.state_json
    while True:
        found = (await store.cells.read([batch.cell_id])).get(batch.cell_id)
        if found is not None and not _is_next(batch, found, state_json):
            return False
        try:
            async with store.transaction() as transaction:
                for request in batch.requests(0 if found is None else found.version, state_json):
                    transaction.append(request)
        except Conflict:
            if (await store.cells.read([batch.cell_id])).get(batch.cell_id) == found:
                raise  # nobody was faster: it is the batch that is in conflict
        else:
            return True


def _is_next(batch: Batch, found: Cell, state_json: str) -> bool:
    """Whether it comes after the last one; the last one again is known, and an older one cannot be Spark's."""
    last = json.loads(found.state_json)["batch"]
    if batch.number > last:
        return True
    if found.state_json == state_json:
        return False
    raise Conflict(
        f"sink {batch.sink_id!r} has appended batch {last} already, and batch {batch.number} is not that one again; "
        "a query that starts over, or whose rows are others when it reads them again, needs another sinkId"
    )


def check_columns(columns: Sequence[str]) -> None:
    """Refuses what would be lost, and asks for what is missing."""
    for column in columns:
        if column not in (*NEEDED, *OPTIONAL):
            known = ", ".join((*NEEDED, *OPTIONAL))
            raise UsageError(f"an event has no column {shown(column)}; there are {known}")
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


def cut(events: Sequence[Event]) -> Iterator[tuple[Event, ...]]:
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

"""`POST /runs/{run_id}/events`: appends the events of one request, all or none; or one body of any type."""

from time import perf_counter
from typing import Final

from tape.core.codec import MAX_INT, JsonValue
from tape.core.errors import TapeError, TooLarge
from tape.core.event import JSON, MAX_VERSION, Entry, Event, check_run_id
from tape.core.sequence import MAX_EVENTS
from tape.server.http.errors import UnsupportedMediaType
from tape.server.http.request import Request
from tape.server.http.response import Response
from tape.server.http.route import Parameter, ResponseSpec, Route, respond_with
from tape.server.http.whole_number import whole_number
from tape.server.journal_head import epoch_of_positions
from tape.server.node import Node
from tape.server.routes.parameters import IDEMPOTENCY_KEY, RUN_ID, TRACEPARENT, key_of
from tape.server.routes.schemas import (
    Appended,
    Count,
    Id,
    NewEvent,
    NewEvents,
    Position,
    Subject,
    Version,
    parse_body,
)

FORMS: Final = frozenset({"", "application/x-www-form-urlencoded", "multipart/form-data"})


async def append_events(request: Request, node: Node) -> Response:
    """Appends one event or a list of them, in order, and returns their positions."""
    run_id = check_run_id(request.values["run_id"])
    expected = request.header("expected-seq")
    expected_seq = None if expected is None else whole_number("Expected-Seq", expected, 0, MAX_INT)
    events = (
        [await _event(run_id, request)]
        if request.has_query
        else _events(run_id, _new_events(await request.json()), request)
    )
    began, known = perf_counter(), node.journal.epoch
    entries = await _append(node, events, key_of(request), expected_seq)
    node.meters.append_seconds.observe(perf_counter() - began)
    positions = [Position(entry.seq, entry.global_seq) for entry in entries]
    return Response.json(Appended(entries=positions, epoch=epoch_of_positions(entries, known)), 201)


async def _append(node: Node, events: list[Event], key: str | None, expected_seq: int | None) -> list[Entry]:
    try:
        entries = await node.journal.append(events, key=key, expected_seq=expected_seq)
    except TapeError as error:
        node.meters.refused.add(1, error.code)
        raise
    node.meters.published.add(len(entries))
    return entries


async def _event(run_id: str, request: Request) -> Event:
    """One event, whose other fields are in the query: the body is its payload."""
    kind, version = request.parameter("type"), request.parameter("schema_version")
    client = request.header("x-client-id")
    return Event(
        run_id=run_id,
        payload=await request.json() if request.media_type == JSON else await _bytes(request),
        type="message" if kind is None else kind,
        subject=request.parameter("subject"),
        schema_version=1 if version is None else whole_number("schema_version", version, 1, MAX_VERSION),
        content_type=request.media_type,
        trace=request.trace,
        attributes=None if client is None else {"client_id": client},
    )


async def _bytes(request: Request) -> bytes:
    """A body of any type but a form's, which no caller sends on purpose; an entry has no place for parameters."""
    if request.media_type in FORMS or ";" in (request.header("content-type") or ""):
        raise UnsupportedMediaType("a body of bytes needs its Content-Type, which is no form's and has no parameters")
    return await request.body()


def _new_events(value: JsonValue) -> list[NewEvent]:
    parsed: NewEvent | list[NewEvent] = parse_body(value, NewEvents)
    events = parsed if isinstance(parsed, list) else [parsed]
    if len(events) > MAX_EVENTS:
        raise TooLarge(f"a request is at most {MAX_EVENTS:,} events, not {len(events):,}")
    return events


def _events(run_id: str, new_events: list[NewEvent], request: Request) -> list[Event]:
    client = request.header("x-client-id")
    attributes = None if client is None else {"client_id": client}
    return [
        Event(
            run_id=run_id,
            payload=new.payload,
            type=new.type,
            subject=new.subject,
            schema_version=new.schema_version,
            trace=request.trace,
            attributes=attributes,
        )
        for new in new_events
    ]


_OF_EVENT: Final = (
    Parameter(
        name="type", location="query", schema=Id,
        description="The event's type. With it, or with one of the next two, the body is the payload of one event: "
        "JSON, or bytes with their Content-Type.",
    ),
    Parameter(name="subject", location="query", schema=Subject, description="The event's subject."),
    Parameter(name="schema_version", location="query", schema=Version, description="The version of the payload."),
)  # fmt: skip
_HEADERS: Final = (
    IDEMPOTENCY_KEY,
    Parameter(
        name="Expected-Seq", location="header", schema=Count, description="The run's last seq before the append."
    ),
    TRACEPARENT,
    Parameter(
        name="X-Client-Id", location="header", schema=str, description="The producer; streams send it to readers."
    ),
)

ROUTES: Final = (
    Route(
        method="POST", path="/runs/{run_id}/events", name="appendEvents", summary="Append one event or many",
        handler=respond_with(append_events), parameters=(RUN_ID, *_OF_EVENT, *_HEADERS), body=NewEvents,
        response=ResponseSpec(status=201, schema=Appended), problems=(400, 404, 409, 413, 415, 429, 503),
    ),
)  # fmt: skip

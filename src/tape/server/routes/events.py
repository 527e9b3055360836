"""`POST /runs/{run_id}/events`: what a producer says, all of it or nothing."""

from time import perf_counter
from typing import Final

from tape.core.codec import JsonValue
from tape.core.errors import TapeError, TooLarge, UsageError, quoted
from tape.core.event import Entry, Event, check_run_id
from tape.core.sequence import MAX_EVENTS
from tape.server.http.request import Request
from tape.server.http.response import Response
from tape.server.node import Node
from tape.server.routes.shapes import Appended, NewEvent, Position, shaped

MAX_DIGITS: Final = 19


async def append_events(request: Request, node: Node) -> Response:
    """Appends one event or a list of them, in order; the answer has their positions."""
    run_id = check_run_id(request.values["run_id"])
    expected_seq = _expected_seq(request.header("expected-seq"))
    events = _events(run_id, _said(await request.json()), request)
    began = perf_counter()
    entries = await _append(node, events, request.header("idempotency-key"), expected_seq)
    node.meters.append_seconds.observe(perf_counter() - began)
    positions = [Position(entry.seq, entry.global_seq) for entry in entries]
    return Response.json(Appended(entries=positions), 201)


async def _append(node: Node, events: list[Event], key: str | None, expected_seq: int | None) -> list[Entry]:
    try:
        entries = await node.journal.append(events, key=key, expected_seq=expected_seq)
    except TapeError as error:
        node.meters.refused.add(1, error.code)
        raise
    node.meters.published.add(len(entries))
    return entries


def _said(value: JsonValue) -> list[NewEvent]:
    said: NewEvent | list[NewEvent] = shaped(value, NewEvent | list[NewEvent])
    listed = said if isinstance(said, list) else [said]
    if len(listed) > MAX_EVENTS:
        raise TooLarge(f"a request is at most {MAX_EVENTS:,} events, not {len(listed):,}")
    return listed


def _events(run_id: str, said: list[NewEvent], request: Request) -> list[Event]:
    client = request.header("x-client-id")
    attributes = None if client is None else {"client_id": client}
    return [
        Event(
            run_id=run_id,
            payload=one.payload,
            type=one.type,
            subject=one.subject,
            schema_version=one.schema_version,
            trace=request.trace,
            attributes=attributes,
        )
        for one in said
    ]


def _expected_seq(text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= MAX_DIGITS):
        raise UsageError(f"Expected-Seq is the run's last seq, not {quoted(text)}")
    return int(text)

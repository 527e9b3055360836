"""`GET /events` and `GET /session/{run_id}/events`: SSE streams."""

import socket
from contextlib import closing
from typing import Annotated, Final, Literal

from msgspec import Meta

from tape.core.errors import BrokerOverflowError, InvalidCursor, RunNotFound
from tape.core.flow import MAX_MAX_QUEUED, MIN_MAX_QUEUED
from tape.core.ids import Epoch
from tape.core.server_unavailable import ServerUnavailable
from tape.server.http.errors import ClientDisconnected
from tape.server.http.request import Request, Send
from tape.server.http.response import Response
from tape.server.http.route import Handler, Parameter, ResponseSpec, Route
from tape.server.node import Node
from tape.server.routes.parameters import RUN_ID
from tape.server.routes.schemas import Cel, Id, SubjectPattern
from tape.server.sse.options import MAX_CURSOR, StreamRequest
from tape.server.sse.run_end import RunEndFrames
from tape.server.sse.sender import Sender, StopReason
from tape.server.sse.socket_writer import SocketWriter
from tape.server.sse.sources import ColdSource, JournalSource, RunSource, StreamSource
from tape.wire import sse

RETRY_MS: Final = 3000
SEND_BUFFER: Final = 128 * 1024
_Cursor = Annotated[int, Meta(ge=0, le=MAX_CURSOR)]


async def events(request: Request, node: Node, send: Send) -> None:
    """Without a cursor: a run from its beginning, or the journal from now on."""
    parsed = StreamRequest.of(request)
    await _stream(request, node, send, parsed, begins_at=None if parsed.run_id is None else 0)


async def session_events(request: Request, node: Node, send: Send) -> None:
    """Without a cursor: a run from now on."""
    await _stream(request, node, send, StreamRequest.of(request))


async def _stream(
    request: Request, node: Node, send: Send, parsed: StreamRequest, begins_at: int | None = None
) -> None:
    """Streams after the client's cursor, or after `begins_at`, or from now on; 204 at the end of a closed run."""
    if node.is_draining:
        raise ServerUnavailable("the server is shutting down; try again in a moment")
    source, last = await _source(parsed, node)
    if parsed.after == last and await _is_at_end(source, last, parsed.epoch):
        await Response.empty({"x-tape-epoch": str(source.epoch)}).send(send)
        return
    _bound_send_buffer(request)
    writer = SocketWriter(request.connection, lambda: sender.keepalive())
    try:
        with node.subscribers.join(parsed.run_id) as subscriber:
            start = begins_at if parsed.after is None else parsed.after
            after, is_replayed = (last, False) if start is None else (start, True)
            sender = Sender(
                source,
                after,
                writer,
                node.fan_out_groups,
                node.meters,
                flow=parsed.flow,
                is_replayed=is_replayed,
                epoch=None if parsed.after is None else parsed.epoch,
            )
            subscriber.goaway, subscriber.lag = sender.goaway, sender.lag
            node.meters.opened.add()
            await _send_handshake(source.epoch, send, None if is_replayed else last)
            stopped = await sender.run(request.disconnected)
        if stopped is not StopReason.GONE:
            await send({"type": "http.response.body", "body": b"", "more_body": False})
    finally:
        writer.close()


async def _source(parsed: StreamRequest, node: Node) -> tuple[StreamSource, int]:
    """What to stream, and its last id."""
    if parsed.run_id is None:
        return JournalSource(node.journal, parsed.subject, parsed.where), await node.journal.head()
    run_id, ends = parsed.run_id, RunEndFrames(node.runs, node.ledgers)
    record = await node.runs.find(run_id)
    if node.cold is not None and (file := await node.cold.find_ended(run_id, record)) is not None:
        epoch, last = file.epoch_or(node.journal.epoch), file.last_seq
        return ColdSource(node.cold, epoch, run_id, last, ends, parsed.subject, parsed.where), last
    if record is None:
        raise RunNotFound(run_id)
    return RunSource(node.journal, node.runs, run_id, parsed.subject, parsed.where, ends), record.head.last_seq


async def _is_at_end(source: StreamSource, last: int, epoch: int | None) -> bool:
    """Whether one snapshot shows a closed run that ends at `last`; a new epoch or a gap is no end."""
    with closing(source.open(last, epoch)) as reader:
        try:
            page = await reader.replay()
        except (InvalidCursor, BrokerOverflowError):
            return False
        return page.is_over and reader.cursor == last


async def _send_handshake(epoch: Epoch, send: Send, cursor: int | None) -> None:
    """A client without a cursor gets one, so that it can reconnect even before its first event."""
    begin = sse.retry(RETRY_MS) if cursor is None else sse.retry(RETRY_MS) + sse.checkpoint(cursor)
    headers = [
        (b"content-type", b"text/event-stream; charset=utf-8"),
        (b"cache-control", b"no-store, no-transform"),
        (b"x-accel-buffering", b"no"),
        (b"x-tape-epoch", str(epoch).encode()),
    ]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": begin, "more_body": True})


def _bound_send_buffer(request: Request) -> None:
    """Without it the kernel would accept megabytes for a client that reads nothing."""
    transport = request.connection.transport
    if transport.is_closing():
        raise ClientDisconnected
    transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)


_FLOW: Final = (
    Parameter(
        name="Last-Event-ID", location="header", schema=_Cursor, description="The last id handled; wins over from_*."
    ),
    Parameter(
        name="X-Tape-Epoch", location="header", schema=_Cursor, description="The journal that the cursor is from."
    ),
    Parameter(name="epoch", location="query", schema=_Cursor, description="The same for clients that send no headers."),
    Parameter(
        name="maxQueued",
        location="query",
        schema=Annotated[int, Meta(ge=MIN_MAX_QUEUED, le=MAX_MAX_QUEUED)],
        description="How many entries a live reader may be behind.",
    ),
    Parameter(
        name="slow",
        location="query",
        schema=Literal["evict", "lag"],
        description="What happens to a reader that is further behind.",
    ),
)
_FILTERS: Final = (
    Parameter(name="from_seq", location="query", schema=_Cursor, description="Of a run: the first seq to send."),
    Parameter(name="subject", location="query", schema=SubjectPattern, description="A pattern of subjects."),
    Parameter(name="where", location="query", schema=Cel, description="A CEL expression over entries."),
)
_SELECTION: Final = (
    Parameter(name="run_id", location="query", schema=Id, description="One run, by its seqs."),
    *_FILTERS,
    Parameter(
        name="from_global_seq", location="query", schema=_Cursor, description="Across runs: the last position handled."
    ),
)


def _route(path: str, name: str, summary: str, handler: Handler, parameters: tuple[Parameter, ...]) -> Route:
    return Route(
        method="GET", path=path, name=name, summary=summary, handler=handler,
        response=ResponseSpec(content_type="text/event-stream"), parameters=(*parameters, *_FLOW),
        problems=(400, 404, 429, 503), is_stream=True,
    )  # fmt: skip


ROUTES: Final = (
    _route("/events", "events", "Stream a run, or subjects across runs", events, _SELECTION),
    _route(
        "/session/{run_id}/events", "sessionEvents", "Stream a run, live only without a cursor", session_events,
        (RUN_ID, *_FILTERS),
    ),
)  # fmt: skip

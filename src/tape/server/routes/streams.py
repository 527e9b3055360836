"""`GET /events` and `GET /session/{run_id}/events`: SSE streams."""

import socket
from contextlib import closing
from typing import Final

from tape.core.errors import BrokerOverflowError, InvalidCursor, RunNotFound
from tape.core.ids import RunId
from tape.core.run import RunRecord
from tape.server.http.refusals import ClientGone, NotNow
from tape.server.http.request import Request, Send
from tape.server.http.response import Response
from tape.server.node import ColdRuns, Node
from tape.server.sse.options import StreamRequest
from tape.server.sse.run_end import RunEndFrames
from tape.server.sse.sender import Sender, StopReason
from tape.server.sse.socket_writer import SocketWriter
from tape.server.sse.sources import ColdSource, JournalSource, RunSource, Source
from tape.wire import sse

RETRY_MS: Final = 3000
SEND_BUFFER: Final = 128 * 1024


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
        raise NotNow("the server is leaving; come back in a moment")
    source, last = await _source(parsed, node)
    if parsed.after == last and await _is_at_end(source, last, parsed.epoch):
        await Response.empty({"x-tape-epoch": str(node.journal.epoch)}).send(send)
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
            await _send_handshake(node, send, None if is_replayed else last)
            stopped = await sender.run(request.gone)
        if stopped is not StopReason.GONE:
            await send({"type": "http.response.body", "body": b"", "more_body": False})
    finally:
        writer.close()


async def _source(parsed: StreamRequest, node: Node) -> tuple[Source, int]:
    """What to stream, and its last id."""
    if parsed.run_id is None:
        return JournalSource(node.journal, parsed.subject, parsed.where), await node.journal.head()
    run_id, ends = parsed.run_id, RunEndFrames(node.runs, node.ledgers)
    record = await node.runs.find(run_id)
    is_ended = record is None or not record.head.is_open
    if node.cold is not None and is_ended and _is_cold(node.cold, run_id, record):
        await node.journal.head()  # updates the epoch, which a file does not know
        if (file := await node.cold.find(run_id)) is None:
            raise _is_being_written(run_id)
        last = file.head.last_seq
        return ColdSource(node.cold, node.journal.epoch, run_id, last, ends, parsed.subject, parsed.where), last
    if record is None:
        raise RunNotFound(run_id)
    return RunSource(node.journal, node.runs, run_id, parsed.subject, parsed.where, ends), record.head.last_seq


async def _is_at_end(source: Source, last: int, epoch: int | None) -> bool:
    """Whether one snapshot shows a closed run that ends at `last`; a new epoch or a gap is no end."""
    with closing(source.open(last, epoch)) as reader:
        try:
            page = await reader.replay()
        except (InvalidCursor, BrokerOverflowError):
            return False
        return page.is_over and reader.cursor == last


def _is_cold(cold: ColdRuns, run_id: RunId, record: RunRecord | None) -> bool:
    """Whether to read an ended run from its file, which must not be opened while it is being written.

    While the store holds the run, the file may be incomplete, of an earlier incarnation, or of another journal.
    """
    if record is not None and not record.is_reaped:
        return (run_id, record.head.opened_seq) in cold.incarnations
    if cold.is_being_written(run_id):
        raise _is_being_written(run_id)
    return cold.has(run_id)


def _is_being_written(run_id: RunId) -> NotNow:
    return NotNow(f"run {run_id!r} is still being written to its file; come back in a moment")


async def _send_handshake(node: Node, send: Send, cursor: int | None) -> None:
    """A client without a cursor gets one, so that it can reconnect even before its first event."""
    node.meters.opened.add()
    begin = sse.retry(RETRY_MS) if cursor is None else sse.retry(RETRY_MS) + sse.checkpoint(cursor)
    headers = [
        (b"content-type", b"text/event-stream; charset=utf-8"),
        (b"cache-control", b"no-store, no-transform"),
        (b"x-accel-buffering", b"no"),
        (b"x-tape-epoch", str(node.journal.epoch).encode()),
    ]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": begin, "more_body": True})


def _bound_send_buffer(request: Request) -> None:
    """Without it the kernel would accept megabytes for a client that reads nothing."""
    transport = request.connection.transport
    if transport.is_closing():
        raise ClientGone
    transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)

"""`GET /events` and `GET /session/{run_id}/events`: a stream for as long as somebody listens."""

import socket
from contextlib import closing
from typing import Final

from tape.core.errors import BrokerOverflowError, InvalidCursor, RunNotFound
from tape.core.ids import RunId, Seq
from tape.core.run import RunRecord
from tape.server.http.refusals import ClientGone, NotNow
from tape.server.http.request import Request, Send
from tape.server.http.response import Response
from tape.server.node import ColdRuns, Node
from tape.server.sse.options import StreamRequest
from tape.server.sse.run_end import RunEndFrames
from tape.server.sse.sender import End, Sender
from tape.server.sse.socket_writer import SocketWriter
from tape.server.sse.sources import ColdSource, JournalSource, RunSource, Source
from tape.wire import sse

RETRY_MS: Final = 3000
SEND_BUFFER: Final = 128 * 1024


async def events(request: Request, node: Node, send: Send) -> None:
    """A run from its beginning, or the journal from now on, unless the reader brings a cursor."""
    parsed = StreamRequest.of(request)
    await _stream(request, node, send, parsed, begins_at=None if parsed.run_id is None else 0)


async def session_events(request: Request, node: Node, send: Send) -> None:
    """A run from now on, unless the reader brings a cursor."""
    await _stream(request, node, send, StreamRequest.of(request))


async def _stream(
    request: Request, node: Node, send: Send, parsed: StreamRequest, begins_at: int | None = None
) -> None:
    """Streams from the reader's cursor on, else from a place or from now on; from the end of a closed run, nothing."""
    if node.is_draining:
        raise NotNow("the server is leaving; come back in a moment")
    source, last = await _source(parsed, node)
    if parsed.after == last and await _is_at_end(source, last, parsed.epoch):
        await Response.empty({"x-tape-epoch": str(node.journal.epoch)}).send(send)
        return
    _bound_send_buffer(request)
    writer = SocketWriter(request.connection, lambda: sender.quiet())
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
            await _greet(request, node, send, None if is_replayed else last)
            end = await sender.run(request.gone)
        if end is not End.GONE:
            await send({"type": "http.response.body", "body": b"", "more_body": False})
    finally:
        writer.close()


async def _source(parsed: StreamRequest, node: Node) -> tuple[Source, int]:
    """What the stream is read from, and the last place there is."""
    if parsed.run_id is None:
        return JournalSource(node.journal, parsed.subject, parsed.where), await node.journal.head()
    run_id, ends = parsed.run_id, RunEndFrames(node.runs, node.ledgers)
    record = await node.runs.find(run_id)
    is_ended = record is None or not record.head.is_open
    if node.cold is not None and is_ended and _is_kept(node.cold, run_id, record):
        await node.journal.head()  # a file knows of no epoch, and one may have begun since the store was last read
        cold = ColdSource(node.cold, node.journal.epoch, run_id, ends, parsed.subject, parsed.where)
        return cold, await _last_kept(node.cold, run_id)
    if record is None:
        raise RunNotFound(run_id)
    return RunSource(node.journal, node.runs, run_id, parsed.subject, parsed.where, ends), record.head.last_seq


async def _last_kept(cold: ColdRuns, run_id: RunId) -> Seq:
    record = await cold.find(run_id)
    if record is None:
        raise _is_being_written(run_id)
    return record.head.last_seq


async def _is_at_end(source: Source, last: int, epoch: int | None) -> bool:
    """Whether its last place is the end of a closed run, as one snapshot says: a new epoch or a gap is no end."""
    with closing(source.open(last, epoch)) as reading:
        try:
            page = await reading.replay()
        except (InvalidCursor, BrokerOverflowError):
            return False
        return page.is_over and reading.cursor == last


def _is_kept(cold: ColdRuns, run_id: RunId, record: RunRecord | None) -> bool:
    """Whether to read a run that has ended from its file, which nobody opens while it is being written.

    While the store holds the run, the file may be an earlier incarnation's, another journal's or half of it.
    """
    if record is not None and not record.is_reaped:
        return (run_id, record.head.opened_seq) in cold.incarnations
    if cold.is_being_written(run_id):
        raise _is_being_written(run_id)
    return cold.has(run_id)


def _is_being_written(run_id: RunId) -> NotNow:
    return NotNow(f"run {run_id!r} is still being written to its file; come back in a moment")


async def _greet(request: Request, node: Node, send: Send, cursor: int | None) -> None:
    """The handshake. A reader without a cursor is given one, so that it can come back even before its first event."""
    node.meters.opened.add()
    begin = sse.retry(RETRY_MS) if cursor is None else sse.retry(RETRY_MS) + sse.checkpoint(cursor)
    await send({"type": "http.response.start", "status": 200, "headers": _headers(node)})
    await send({"type": "http.response.body", "body": begin, "more_body": True})


def _headers(node: Node) -> list[tuple[bytes, bytes]]:
    return [
        (b"content-type", b"text/event-stream; charset=utf-8"),
        (b"cache-control", b"no-store, no-transform"),
        (b"x-accel-buffering", b"no"),
        (b"x-tape-epoch", str(node.journal.epoch).encode()),
    ]


def _bound_send_buffer(request: Request) -> None:
    """The kernel would take megabytes for a reader that takes nothing, and call them delivered."""
    transport = request.connection.transport
    if transport.is_closing():
        raise ClientGone
    transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)

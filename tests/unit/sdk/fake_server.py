"""A fake server on a real socket that answers `GET` with one scripted response per request."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TypeAlias
from urllib.parse import parse_qsl, urlsplit

from tape.core.event import Event
from tape.core.ids import Epoch
from tape.wire import sse
from tape.wire.frames import RunEnd

SHORT_RETRY = sse.retry(1)
RUN_END = sse.synthetic(RunEnd(reason="closed", last_event_id=9, state="complete"))


@dataclass(frozen=True, kw_only=True)
class ReceivedRequest:
    """A received request."""

    path: str
    query: dict[str, str]
    headers: dict[str, str]

    @property
    def cursor(self) -> tuple[str | None, str | None]:
        return self.headers.get("last-event-id"), self.headers.get("x-tape-epoch")


Response: TypeAlias = Callable[[ReceivedRequest, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class FakeServer:
    """The scripted responses and the received requests. A request after the last response is disconnected."""

    responses: list[Response]
    url: str = ""
    requests: list[ReceivedRequest] = field(default_factory=list)

    @property
    def cursors(self) -> list[str | None]:
        return [request.cursor[0] for request in self.requests if request.path == "/events"]

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                self.requests.append(await _request(reader))
                if len(self.requests) > len(self.responses):
                    return
                await self.responses[len(self.requests) - 1](self.requests[-1], writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            return
        finally:
            writer.transport.abort()


@asynccontextmanager
async def serving(*responses: Response) -> AsyncIterator[FakeServer]:
    server = FakeServer(list(responses))
    listener = await asyncio.start_server(server.answer, "127.0.0.1")
    server.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    try:
        yield server
    finally:
        listener.close()


def frames(*numbers: int, run_id: str = "r1", by: sse.IdField = "seq") -> bytes:
    """The frames of entries with these numbers."""
    events = [(number, Event(run_id=run_id, payload={"n": number, "text": "é\n\n"})) for number in numbers]
    return b"".join(sse.frame(event.at(number + 100, number, 5, 0, Epoch(5)), by=by) for number, event in events)


def ended(*chunks: bytes, epoch: int | None = 5) -> Response:
    """A stream of these chunks, and the end of its run."""
    return streamed(*chunks, RUN_END, epoch=epoch)


def streamed(*chunks: bytes, epoch: int | None = 5) -> Response:
    """A stream of these chunks that a proxy ends cleanly."""

    async def respond(_: ReceivedRequest, writer: asyncio.StreamWriter) -> None:
        await _begin(writer, chunks, epoch)
        writer.write(b"0\r\n\r\n")
        await writer.drain()

    return respond


def cut_off(*chunks: bytes, epoch: int | None = 5) -> Response:
    """The same, but the connection is reset before its end."""

    async def respond(_: ReceivedRequest, writer: asyncio.StreamWriter) -> None:
        await _begin(writer, chunks, epoch)
        await _flushed(writer)
        raise ConnectionError

    return respond


def stopped(*chunks: bytes) -> Response:
    """The same, but the server closes without ending the response."""

    async def respond(_: ReceivedRequest, writer: asyncio.StreamWriter) -> None:
        await _begin(writer, chunks, 5)
        writer.write_eof()
        await _flushed(writer)
        raise ConnectionError

    return respond


def unmeasured(*chunks: bytes) -> Response:
    """A stream as an HTTP/1.0 proxy passes it on: it ends with the connection."""

    async def respond(_: ReceivedRequest, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + b"".join(chunks))
        writer.write_eof()
        await _flushed(writer)
        raise ConnectionError

    return respond


def resuming(last: int, *, most: int) -> Response:
    """A server that continues after the cursor up to a last entry, on a connection that breaks after some bytes."""

    async def respond(asked: ReceivedRequest, writer: asyncio.StreamWriter) -> None:
        rest = range(int(asked.cursor[0] or 0) + 1, last + 1)
        data = SHORT_RETRY + frames(*rest) + RUN_END
        await _begin(writer, (data[:most],), 5)
        if most < len(data):
            await _flushed(writer)
            raise ConnectionError
        writer.write(b"0\r\n\r\n")
        await writer.drain()

    return respond


def held(*chunks: bytes, until: asyncio.Event) -> Response:
    """A stream that stays open and silent after these chunks."""

    async def respond(_: ReceivedRequest, writer: asyncio.StreamWriter) -> None:
        await _begin(writer, chunks, 5)
        await until.wait()

    return respond


def answered(status: int, body: bytes = b"", kind: str = "application/problem+json", **headers: str) -> Response:
    async def respond(_: ReceivedRequest, writer: asyncio.StreamWriter) -> None:
        fields = {"Content-Type": kind, "Content-Length": str(len(body)), **headers}
        writer.write(_head(status, fields) + body)
        await writer.drain()

    return respond


async def refused(_: ReceivedRequest, writer: asyncio.StreamWriter) -> None:
    """No answer at all."""
    raise ConnectionError


async def _begin(writer: asyncio.StreamWriter, chunks: tuple[bytes, ...], epoch: int | None) -> None:
    epochs = {} if epoch is None else {"X-Tape-Epoch": str(epoch)}
    writer.write(_head(200, {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked", **epochs}))
    for piece in chunks:
        writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        await writer.drain()


async def _flushed(writer: asyncio.StreamWriter) -> None:
    """Waits until the system has every byte; a reset would drop the rest."""
    writer.transport.set_write_buffer_limits(0)
    await writer.drain()


def _head(status: int, fields: dict[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", *(f"{name}: {value}" for name, value in fields.items())]
    return "\r\n".join([*lines, "", ""]).encode()


async def _request(reader: asyncio.StreamReader) -> ReceivedRequest:
    first, *fields = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")[:-2]
    target = urlsplit(first.split(" ")[1])
    pairs = (line.partition(":") for line in fields)
    headers = {name.lower(): value.strip() for name, _, value in pairs}
    return ReceivedRequest(path=target.path, query=dict(parse_qsl(target.query)), headers=headers)

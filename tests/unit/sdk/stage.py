"""A server that answers `GET` as a test has scripted it, on a real socket: one act for each request."""

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

EAGER = sse.retry(1)
RUN_END = sse.synthetic(RunEnd(reason="closed", last_event_id=9, state="complete"))


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A request as it came."""

    path: str
    query: dict[str, str]
    headers: dict[str, str]

    @property
    def cursor(self) -> tuple[str | None, str | None]:
        return self.headers.get("last-event-id"), self.headers.get("x-tape-epoch")


Act: TypeAlias = Callable[[Asked, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Stage:
    """What is played, and what was asked meanwhile. A request beyond the last act is cut off."""

    acts: list[Act]
    url: str = ""
    asked: list[Asked] = field(default_factory=list)

    @property
    def cursors(self) -> list[str | None]:
        return [request.cursor[0] for request in self.asked if request.path == "/events"]

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                self.asked.append(await _request(reader))
                if len(self.asked) > len(self.acts):
                    return
                await self.acts[len(self.asked) - 1](self.asked[-1], writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            return
        finally:
            writer.transport.abort()


@asynccontextmanager
async def played(*acts: Act) -> AsyncIterator[Stage]:
    stage = Stage(list(acts))
    server = await asyncio.start_server(stage.answer, "127.0.0.1")
    stage.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield stage
    finally:
        server.close()


def told(*numbers: int, run_id: str = "r1", by: sse.IdField = "seq") -> bytes:
    """The frames of so numbered entries."""
    events = [(number, Event(run_id=run_id, payload={"n": number, "text": "é\n\n"})) for number in numbers]
    return b"".join(sse.frame(event.at(number + 100, number, 5, 0, Epoch(5)), by=by) for number, event in events)


def ended(*pieces: bytes, epoch: int | None = 5) -> Act:
    """A stream of these pieces, and the end of its run."""
    return streamed(*pieces, RUN_END, epoch=epoch)


def streamed(*pieces: bytes, epoch: int | None = 5) -> Act:
    """A stream of these pieces that somebody on the way finishes."""

    async def act(_: Asked, writer: asyncio.StreamWriter) -> None:
        await _begin(writer, pieces, epoch)
        writer.write(b"0\r\n\r\n")
        await writer.drain()

    return act


def cut_off(*pieces: bytes, epoch: int | None = 5) -> Act:
    """The same, but the connection is reset before its end."""

    async def act(_: Asked, writer: asyncio.StreamWriter) -> None:
        await _begin(writer, pieces, epoch)
        await _flushed(writer)
        raise ConnectionError

    return act


def stopped(*pieces: bytes) -> Act:
    """The same, but the server closes without a word that it has finished."""

    async def act(_: Asked, writer: asyncio.StreamWriter) -> None:
        await _begin(writer, pieces, 5)
        writer.write_eof()
        await _flushed(writer)
        raise ConnectionError

    return act


def unmeasured(*pieces: bytes) -> Act:
    """A stream as a proxy of HTTP/1.0 passes it on: its end is the end of the connection."""

    async def act(_: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + b"".join(pieces))
        writer.write_eof()
        await _flushed(writer)
        raise ConnectionError

    return act


def honest(last: int, *, most: int) -> Act:
    """A server that goes on after the cursor up to a last entry, over a line that breaks after so many bytes."""

    async def act(asked: Asked, writer: asyncio.StreamWriter) -> None:
        rest = range(int(asked.cursor[0] or 0) + 1, last + 1)
        data = EAGER + told(*rest) + RUN_END
        await _begin(writer, (data[:most],), 5)
        if most < len(data):
            await _flushed(writer)
            raise ConnectionError
        writer.write(b"0\r\n\r\n")
        await writer.drain()

    return act


def held(*pieces: bytes, until: asyncio.Event) -> Act:
    """A stream that stays open and silent after these pieces."""

    async def act(_: Asked, writer: asyncio.StreamWriter) -> None:
        await _begin(writer, pieces, 5)
        await until.wait()

    return act


def answered(status: int, body: bytes = b"", kind: str = "application/problem+json", **headers: str) -> Act:
    async def act(_: Asked, writer: asyncio.StreamWriter) -> None:
        fields = {"Content-Type": kind, "Content-Length": str(len(body)), **headers}
        writer.write(_head(status, fields) + body)
        await writer.drain()

    return act


async def refused(_: Asked, writer: asyncio.StreamWriter) -> None:
    """No answer at all."""
    raise ConnectionError


async def _begin(writer: asyncio.StreamWriter, pieces: tuple[bytes, ...], epoch: int | None) -> None:
    epochs = {} if epoch is None else {"X-Tape-Epoch": str(epoch)}
    writer.write(_head(200, {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked", **epochs}))
    for piece in pieces:
        writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        await writer.drain()


async def _flushed(writer: asyncio.StreamWriter) -> None:
    """Until the system has every byte; a reset would drop what is still here."""
    writer.transport.set_write_buffer_limits(0)
    await writer.drain()


def _head(status: int, fields: dict[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", *(f"{name}: {value}" for name, value in fields.items())]
    return "\r\n".join([*lines, "", ""]).encode()


async def _request(reader: asyncio.StreamReader) -> Asked:
    first, *fields = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")[:-2]
    target = urlsplit(first.split(" ")[1])
    pairs = (line.partition(":") for line in fields)
    headers = {name.lower(): value.strip() for name, _, value in pairs}
    return Asked(path=target.path, query=dict(parse_qsl(target.query)), headers=headers)

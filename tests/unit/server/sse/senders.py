"""An SSE stream over a socket pair, without a server: caps of any size, and a client that may not read."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar, cast

import anyio

from tape.bus.journal import Journal
from tape.core.event import Event
from tape.core.flow import Flow
from tape.server.sse.fan_out import FanOutGroups
from tape.server.sse.sender import Sender, StopReason
from tape.server.sse.socket_writer import SocketWriter
from tape.server.sse.sources import StreamSource
from tape.telemetry import Meters
from tape.wire.frames import Delivered, Frame
from tape.wire.sse import Parser
from tests.deadlines import DEADLINE_S

SMALL = 4096
LARGE = "x" * 2000

Kind = TypeVar("Kind", bound=Frame)


class ServerEnd(asyncio.Protocol):
    """The server's end of a connection."""

    def __init__(self) -> None:
        self.on_paused: Callable[[], object] | None = None
        self.on_resumed: Callable[[], object] | None = None
        self.room = asyncio.Event()
        self.room.set()
        self.lost = asyncio.Event()
        self.transport = cast(asyncio.Transport, None)  # set before anybody sees the connection

    @property
    def is_paused(self) -> bool:
        return not self.room.is_set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.set_write_buffer_limits(high=SMALL, low=SMALL // 4)

    def connection_lost(self, exc: Exception | None) -> None:
        self.room.set()
        self.lost.set()
        if self.on_resumed is not None:
            self.on_resumed()

    def pause_writing(self) -> None:
        self.room.clear()
        if self.on_paused is not None:
            self.on_paused()

    def resume_writing(self) -> None:
        self.room.set()
        if self.on_resumed is not None:
            self.on_resumed()

    async def drain(self) -> None:
        await self.room.wait()

    async def gone(self) -> None:
        await self.lost.wait()


class Client:
    """The client's end: it reads only when a test calls it."""

    def __init__(self, end: socket.socket, meters: Meters) -> None:
        self.socket = end
        self.meters = meters
        self.goaway: Callable[[int], None] = lambda _: None
        self.pending: Callable[[], int] = lambda: 0
        self.end: StopReason | None = None
        self.ended = anyio.Event()
        self.frames: list[Frame] = []
        self._buffer = b""
        self._raw = b""
        self._parser = Parser()

    async def read(self, until: Callable[[list[Frame]], bool]) -> list[Frame]:
        """Reads until the frames fulfil a condition."""
        with anyio.fail_after(DEADLINE_S):
            while not until(self.frames):
                self.take(await asyncio.get_running_loop().sock_recv(self.socket, 65536))
        return self.frames

    async def first(self, kind: type[Kind]) -> Kind:
        frames = await self.read(lambda frames: any(isinstance(frame, kind) for frame in frames))
        return next(frame for frame in frames if isinstance(frame, kind))

    async def received(self, data: bytes, *, times: int) -> None:
        """Reads until bytes that are no frame have arrived so many times."""
        with anyio.fail_after(DEADLINE_S):
            while self._raw.count(data) < times:
                self.take(await asyncio.get_running_loop().sock_recv(self.socket, 65536))

    async def stopped(self) -> StopReason | None:
        with anyio.fail_after(DEADLINE_S):
            await self.ended.wait()
        return self.end

    async def entries(self, count: int) -> list[int]:
        """Reads so many entries; returns their ids."""
        await self.read(lambda frames: len(ids(frames)) >= count)
        return ids(self.frames)

    def take(self, data: bytes) -> None:
        """Parses bytes that were read from the socket."""
        assert data, f"the stream ended after {self.frames[-3:]}"
        self._buffer += data
        while (cut := self._buffer.find(b"\r\n")) >= 0:
            size = int(self._buffer[:cut], 16)
            if len(self._buffer) < cut + size + 4:
                return
            self._raw += self._buffer[cut + 2 : cut + 2 + size]
            self.frames += self._parser.feed(self._buffer[cut + 2 : cut + 2 + size])
            self._buffer = self._buffer[cut + size + 4 :]


async def publish(journal: Journal, count: int, payload: str = LARGE) -> None:
    """Appends events to run r1, one append each."""
    for _ in range(count):
        await journal.append(Event(run_id="r1", payload=payload), open=True)


def ids(frames: list[Frame]) -> list[int]:
    return [frame.id for frame in frames if isinstance(frame, Delivered)]


@asynccontextmanager
async def sending(
    source: StreamSource,
    after: int = 0,
    *,
    flow: Flow | None = None,
    is_replayed: bool = True,
    groups: FanOutGroups | None = None,
) -> AsyncIterator[Client]:
    """Starts a stream; yields its client. Without a flow the client may lag."""
    near, far = socket.socketpair()
    for end in (near, far):
        end.setblocking(False)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SMALL)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL)
    line = ServerEnd()
    await asyncio.get_running_loop().create_connection(lambda: line, sock=near)
    client = Client(far, Meters())
    sender: Sender

    async def run() -> None:
        client.end = await sender.run(line.gone)
        client.ended.set()

    writer = SocketWriter(line, lambda: sender.keepalive())
    group = groups or FanOutGroups()
    sender = Sender(source, after, writer, group, client.meters, flow=flow, is_replayed=is_replayed)
    client.goaway = sender.goaway
    client.pending = line.transport.get_write_buffer_size
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        try:
            yield client
        finally:
            writer.close()
            if not line.lost.is_set():
                line.transport.abort()
            far.close()
            tasks.cancel_scope.cancel()

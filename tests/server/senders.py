"""An SSE stream over a real socket pair, without a server around it: caps of any size, a client that may not read."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar, cast

import anyio

from tape.core.flow import Flow
from tape.server.sse.fan_out import FanOutGroups
from tape.server.sse.sender import Sender, StopReason
from tape.server.sse.socket_writer import SocketWriter
from tape.server.sse.sources import Source
from tape.telemetry import Meters
from tape.wire.frames import Delivered, Frame
from tape.wire.sse import Parser
from tests.patience import PATIENCE_S

SMALL = 4096

Kind = TypeVar("Kind", bound=Frame)


class Line(asyncio.Protocol):
    """The server's end of a connection."""

    def __init__(self) -> None:
        self.paused: Callable[[], object] | None = None
        self.resumed: Callable[[], object] | None = None
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
        if self.resumed is not None:
            self.resumed()

    def pause_writing(self) -> None:
        self.room.clear()
        if self.paused is not None:
            self.paused()

    def resume_writing(self) -> None:
        self.room.set()
        if self.resumed is not None:
            self.resumed()

    async def drain(self) -> None:
        await self.room.wait()

    async def gone(self) -> None:
        await self.lost.wait()


class Client:
    """The other end: it reads only when it is asked to."""

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
        """Everything up to and including what is waited for."""
        with anyio.fail_after(PATIENCE_S):
            while not until(self.frames):
                self.take(await asyncio.get_running_loop().sock_recv(self.socket, 65536))
        return self.frames

    async def first(self, kind: type[Kind]) -> Kind:
        frames = await self.read(lambda frames: any(isinstance(frame, kind) for frame in frames))
        return next(frame for frame in frames if isinstance(frame, kind))

    async def received(self, data: bytes, *, times: int) -> None:
        """Until something that is no frame has come so many times."""
        with anyio.fail_after(PATIENCE_S):
            while self._raw.count(data) < times:
                self.take(await asyncio.get_running_loop().sock_recv(self.socket, 65536))

    async def entries(self, count: int) -> list[int]:
        """The ids of so many entries."""
        await self.read(lambda frames: len(ids(frames)) >= count)
        return ids(self.frames)

    def take(self, data: bytes) -> None:
        """What has been read from the socket."""
        assert data, f"the stream ended after {self.frames[-3:]}"
        self._buffer += data
        while (cut := self._buffer.find(b"\r\n")) >= 0:
            size = int(self._buffer[:cut], 16)
            if len(self._buffer) < cut + size + 4:
                return
            self._raw += self._buffer[cut + 2 : cut + 2 + size]
            self.frames += self._parser.feed(self._buffer[cut + 2 : cut + 2 + size])
            self._buffer = self._buffer[cut + size + 4 :]


def ids(frames: list[Frame]) -> list[int]:
    return [frame.id for frame in frames if isinstance(frame, Delivered)]


@asynccontextmanager
async def sending(
    source: Source,
    after: int = 0,
    *,
    flow: Flow | None = None,
    is_replayed: bool = True,
    groups: FanOutGroups | None = None,
) -> AsyncIterator[Client]:
    """A stream under way, and its client; without a flow it may lag."""
    near, far = socket.socketpair()
    for end in (near, far):
        end.setblocking(False)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SMALL)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL)
    line = Line()
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

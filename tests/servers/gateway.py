"""A gateway that speaks HTTP and may end a stream cleanly, with its last chunk, although its server has more to send.

async with gateway(port) as between:
    ...  # read a stream at between.port
    between.end_streams()  # each reader gets a complete response
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import anyio

from tests.deadlines import DEADLINE_S

HEAD_END = b"\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"


class Gateway:
    """Passes one request per connection on to a loopback server; other answers than streams pass through whole."""

    def __init__(self, port: int) -> None:
        self._server_port = port
        self.port = 0
        self.requests: list[str] = []
        """The first line of each request for a stream."""
        self.statuses: list[int] = []
        """How the server answered those."""
        self._streams: set[anyio.CancelScope] = set()
        self._connections: set[asyncio.StreamWriter] = set()

    @property
    def open_streams(self) -> int:
        return len(self._streams)

    def end_streams(self) -> int:
        """Ends what is streamed now, between two chunks; how many streams those were."""
        ended = tuple(self._streams)
        for stream in ended:
            stream.cancel()
        return len(ended)

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections.add(writer)
        try:
            await self._pass_on(reader, writer)
        finally:
            self._connections.discard(writer)

    async def close(self) -> None:
        """Hangs up on everybody, and returns when nothing is left of it."""
        for connection in self._connections:
            connection.transport.abort()
        with anyio.fail_after(DEADLINE_S):
            while self._connections:
                self.end_streams()
                await anyio.sleep(0.01)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            head = await reader.readuntil(HEAD_END)
            behind, ahead = await asyncio.open_connection("127.0.0.1", self._server_port)
            try:
                ahead.write(_closing(head) + await reader.readexactly(_length(head)))
                await self._answer(head, behind, writer)
            finally:
                ahead.transport.abort()
        with suppress(ConnectionError):
            writer.close()
            await writer.wait_closed()

    async def _answer(self, asked: bytes, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        head = await source.readuntil(HEAD_END)
        if b"/events" in asked.split(b"\r\n")[0] and asked.startswith(b"GET"):
            self.requests.append(asked.split(b"\r\n")[0].decode())
            self.statuses.append(int(head.split(b" ")[1]))
        target.write(head)
        if b"text/event-stream" not in head:
            while piece := await source.read(65_536):
                target.write(piece)
            return
        with anyio.CancelScope() as stream:
            self._streams.add(stream)
            await _pass_chunks(source, target)
        self._streams.discard(stream)
        if stream.cancelled_caught:
            target.write(LAST_CHUNK)


@asynccontextmanager
async def gateway(port: int) -> AsyncIterator[Gateway]:
    """Stands before the loopback server on a port for as long as its block."""
    between = Gateway(port)
    server = await asyncio.start_server(between.connected, "127.0.0.1", 0)
    between.port = server.sockets[0].getsockname()[1]
    try:
        yield between
    finally:
        server.close()
        await between.close()


async def _pass_chunks(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    """Chunk by chunk; a chunk is written whole or not at all."""
    while True:
        size = await source.readuntil(b"\r\n")
        chunk = await source.readexactly(int(size, 16) + 2)
        target.write(size + chunk)
        if int(size, 16) == 0:
            return


def _length(head: bytes) -> int:
    lengths = [line.partition(b":")[2] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    return int(lengths[0]) if lengths else 0


def _closing(head: bytes) -> bytes:
    """The request, as the only one of its connection."""
    first, *fields = head.removesuffix(HEAD_END).split(b"\r\n")
    kept = [field for field in fields if not field.lower().startswith(b"connection:")]
    return b"\r\n".join([first, *kept, b"Connection: close"]) + HEAD_END

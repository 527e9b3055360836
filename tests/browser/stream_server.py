"""A minimal server for EventSource with reconnects."""

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

PAGE = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\nretry: 10\n\n"
LAST_EVENT_ID = re.compile(rb"\r\nlast-event-id: (\d+)\r\n", re.IGNORECASE)


class StreamServer:
    """Serves an empty page, and at /events the texts after the Last-Event-ID, numbered from 1."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts
        self.port = 0
        self.cursors: list[int] = []
        """The Last-Event-ID of each request, 0 without one."""

    @asynccontextmanager
    async def open(self) -> AsyncIterator["StreamServer"]:
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        async with server:
            yield self

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            request = await reader.readuntil(b"\r\n\r\n")
            writer.write(self._stream(request) if b" /events " in request else PAGE)
            await writer.drain()
            await reader.read()  # until the browser disconnects
        writer.close()

    def _stream(self, request: bytes) -> bytes:
        found = LAST_EVENT_ID.search(request)
        cursor = int(found[1]) if found else 0
        self.cursors.append(cursor)
        frames = (f"id: {number}\ndata: {text}\n\n" for number, text in enumerate(self._texts, 1) if number > cursor)
        return STREAM + "".join(frames).encode()

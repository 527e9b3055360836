"""A client of server-sent events that reads frames as they come."""

import asyncio
import socket
from typing import Self

DATA = b"\ndata: {"  # once in each event, and not in a payload, which has no line breaks


class SseClient:
    """One connection; chunked transfer encoding is skipped, because its lines are neither fields nor empty frames."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, port: int, path: str) -> Self:
        """Returns when the server has answered."""
        client = cls(*await asyncio.open_connection("127.0.0.1", port, limit=1 << 22))
        await client._request(path)
        return client

    async def _request(self, path: str) -> None:
        head = f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: text/event-stream\r\n\r\n"
        self._writer.write(head.encode())
        answer = await self._reader.readuntil(b"\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 200"), answer

    async def event(self, type: str) -> str:
        """The data of the next event of a type."""
        current = ""
        while True:
            line = (await self._reader.readuntil(b"\n")).decode().rstrip("\r\n")
            if line.startswith("event: "):
                current = line.removeprefix("event: ")
            elif line.startswith("data: ") and current == type:
                return line.removeprefix("data: ")

    async def count(self, wanted: int) -> None:
        """Reads until so many events have come, counted by their data lines."""
        seen, rest = 0, b""
        while seen < wanted:
            chunk = await self._reader.read(1 << 18)
            assert chunk, f"the stream ended after {seen} of {wanted}"
            seen += (rest + chunk).count(DATA)
            rest = (rest + chunk)[-len(DATA) + 1 :]

    def close(self) -> None:
        self._writer.close()


def connect_without_reading(port: int, path: str) -> socket.socket:
    """A client that takes nothing, with the smallest buffer that the system allows."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect(("127.0.0.1", port))
    connection.sendall(f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: text/event-stream\r\n\r\n".encode())
    assert connection.recv(12) == b"HTTP/1.1 200"
    return connection

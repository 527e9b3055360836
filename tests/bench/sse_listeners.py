"""A thousand SSE connections that count what they are sent."""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

MARK: Final = b"\ndata: "


class Listener(asyncio.Protocol):
    """One connection; frames are counted by a mark that each has once, wherever the bytes are cut."""

    def __init__(self, crowd: "Crowd", path: str) -> None:
        self._crowd = crowd
        self._path = path
        self._rest = b""

    def connection_made(self, transport: Any) -> None:
        transport.write(f"GET {self._path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n".encode())

    def data_received(self, data: bytes) -> None:
        data = self._rest + data
        self._rest = data[-len(MARK) + 1 :]
        self._crowd.count(data.count(MARK))


class Crowd:
    """All of them together."""

    def __init__(self) -> None:
        self.seen = 0
        self._wanted = 0
        self._done = asyncio.Event()

    async def come(self, port: int, paths: Sequence[str]) -> list[Any]:
        loop = asyncio.get_running_loop()
        pairs = [await loop.create_connection(lambda p=path: Listener(self, p), "127.0.0.1", port) for path in paths]  # type: ignore[misc]
        return [transport for transport, _ in pairs]

    def count(self, frames: int) -> None:
        self.seen += frames
        if self.seen >= self._wanted:
            self._done.set()

    async def wait(self, wanted: int) -> None:
        """Until so many frames have come."""
        self._wanted = wanted
        self._done.clear()
        if self.seen < wanted:
            await self._done.wait()

"""Writes the bytes of one SSE response directly to its connection.

ASGI cannot tell how much a socket has accepted, and an ASGI message for every frame costs more than the frame. So only
the handshake and the end go through ASGI; everything between goes to the transport.
"""

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

STALL_S: Final = 30.0
TICK_S: Final = 5.0
QUIET_TICKS: Final = 1


class WritableConnection(Protocol):
    """A connection that calls `on_paused` when its write buffer is full and `on_resumed` when there is room again."""

    transport: asyncio.Transport
    on_paused: Callable[[], object] | None
    on_resumed: Callable[[], object] | None

    @property
    def is_paused(self) -> bool: ...
    async def drain(self) -> None: ...


class SharedWriter(Protocol):
    """A fan-out group that writes to the same socket; `written` is how many bytes."""

    written: int


class NoSharedWriter:
    written = 0


class SocketWriter:
    """Writes chunks, sends `keepalive()` when nothing else was written, and aborts a socket that is stalled."""

    def __init__(self, connection: WritableConnection, keepalive: Callable[[], bytes]) -> None:
        self.connection = connection
        self._transport = connection.transport
        self.is_closing = self._transport.is_closing
        self._loop = asyncio.get_running_loop()
        self._keepalive = keepalive
        self._progressed_at = self._loop.time()
        self._quiet_ticks = 0
        self._written = self._accepted = self._written_before = 0
        self._shared: SharedWriter = NoSharedWriter()
        self._timer = self._loop.call_later(TICK_S, self._tick)

    def write(self, chunks: bytes) -> None:
        """Writes unless the connection is gone: its transport may raise then."""
        if not self._transport.is_closing():
            self._transport.write(chunks)
            self._written += len(chunks)

    def share(self, writer: SharedWriter) -> Callable[[bytes], object]:
        """Lets a group write to this socket with the returned function; its bytes count as written here."""
        self._written -= writer.written
        self._shared = writer
        return self._transport.write

    def unshare(self) -> None:
        self._written += self._shared.written
        self._shared = NoSharedWriter()

    async def drain(self) -> None:
        """Returns when there is room, or the connection is gone."""
        if self.connection.is_paused:
            await self.connection.drain()

    def set_callbacks(self, on_full: Callable[[], object] | None, on_room: Callable[[], object] | None) -> None:
        self.connection.on_paused, self.connection.on_resumed = on_full, on_room

    def close(self) -> None:
        self._timer.cancel()
        self.set_callbacks(None, None)

    def _tick(self) -> None:
        """Sends a keepalive within fifteen seconds of silence; aborts after thirty without an accepted byte."""
        now = self._loop.time()
        pending = self._transport.get_write_buffer_size()
        written = self._written + self._shared.written
        accepted = written - pending  # the buffer may have grown although the socket has accepted some of it
        if pending == 0 or accepted > self._accepted:
            self._progressed_at = now
        self._accepted = accepted
        if now - self._progressed_at >= STALL_S:
            self._transport.abort()
            return
        self._quiet_ticks = self._quiet_ticks + 1 if written == self._written_before else 0
        self._written_before = written
        if self._quiet_ticks > QUIET_TICKS and not self.connection.is_paused:
            self.write(self._keepalive())
        self._timer = self._loop.call_later(TICK_S, self._tick)

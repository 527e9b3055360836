"""The bytes of one SSE response, written straight into its connection.

ASGI has no word for how much a socket has taken, and a message for every frame costs more than the frame. So the
handshake and the end go through ASGI, everything between them goes into the transport.
"""

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

STALL_S: Final = 30.0
TICK_S: Final = 5.0
QUIET_TICKS: Final = 1


class Connection(Protocol):
    """What a stream needs of the connection it is written to; it is told when that is full, and when it has room."""

    transport: asyncio.Transport
    paused: Callable[[], object] | None
    resumed: Callable[[], object] | None

    @property
    def is_paused(self) -> bool: ...
    async def drain(self) -> None: ...


class Written(Protocol):
    """Who writes to the same socket, and how much that is."""

    written: int


class Nobody:
    """Nobody else writes."""

    written = 0


class SocketWriter:
    """Writes chunks, knows whether the socket takes them, and lets go of one that takes nothing for long."""

    def __init__(self, connection: Connection, quiet: Callable[[], bytes]) -> None:
        self.connection = connection
        self._transport = connection.transport
        self._loop = asyncio.get_running_loop()
        self._quiet = quiet
        self._moved_at = self._loop.time()
        self._quiet_ticks = 0
        self._written = self._taken = self._known = 0
        self._others: Written = Nobody()
        self._timer = self._loop.call_later(TICK_S, self._tick)

    @property
    def is_paused(self) -> bool:
        return self.connection.is_paused

    @property
    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def write(self, chunks: bytes) -> None:
        """Writes to whoever is still there: a socket that is gone may refuse to be written to."""
        if not self._transport.is_closing():
            self._transport.write(chunks)
            self._written += len(chunks)

    def share(self, others: Written) -> Callable[[bytes], object]:
        """Counts what others write to this socket, and how they do it."""
        self._written -= others.written
        self._others = others
        return self._transport.write

    def own(self) -> None:
        """Has the socket to itself again."""
        self._written += self._others.written
        self._others = Nobody()

    async def drain(self) -> None:
        """Until there is room, or nobody is there any more."""
        if self.connection.is_paused:
            await self.connection.drain()

    def when_full(self, rest: Callable[[], object] | None, resume: Callable[[], object] | None) -> None:
        self.connection.paused, self.connection.resumed = rest, resume

    def close(self) -> None:
        self._timer.cancel()
        self.when_full(None, None)

    def _tick(self) -> None:
        """A word every fifteen seconds at the latest; and an end to a socket that has taken no byte for thirty."""
        now = self._loop.time()
        pending = self._transport.get_write_buffer_size()
        written = self._written + self._others.written
        taken = written - pending  # what waits may have grown although the socket has taken some of it
        if pending == 0 or taken > self._taken:
            self._moved_at = now
        self._taken = taken
        if now - self._moved_at >= STALL_S:
            self._transport.abort()
            return
        self._quiet_ticks = self._quiet_ticks + 1 if written == self._known else 0
        self._known = written
        if self._quiet_ticks > QUIET_TICKS and not self.connection.is_paused:
            self.write(self._quiet())
        self._timer = self._loop.call_later(TICK_S, self._tick)

"""A way to a server through a port of our own; subclasses decide what happens on the way."""

import asyncio
import socket
import struct
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import NamedTuple, Self

import anyio

HELD = 16_384  # what one end may be ahead of the other, so that a sender soon feels a slow receiver
NO_LINGER = struct.pack("ii", 1, 0)


class End(NamedTuple):
    """One end of a connection: what comes from it, and what goes to it."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


class Connection(NamedTuple):
    """One that is served now, in a task of its own."""

    scope: anyio.CancelScope
    is_over: anyio.Event


class Relay(ABC):
    """Forwards connections to a server until its block ends, on a port that it keeps when it is opened again."""

    def __init__(self, host: str, port: int) -> None:
        self._host = host
        self._server_port = port
        self._port = 0
        self._connections: set[Connection] = set()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Self]:
        # No task group: a test may end the block before others that it opened inside it, which a group forbids.
        place = socket.create_server(("127.0.0.1", self._port))
        place.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, HELD)  # those it accepts inherit it
        self._port = place.getsockname()[1]
        server = await asyncio.start_server(self._connected, sock=place, limit=HELD)
        try:
            yield self
        finally:
            server.close()
            await self.cut()
            await server.wait_closed()

    async def cut(self) -> None:
        """Ends every connection, as a network does: both sides only find out."""
        cut = tuple(self._connections)
        for connection in cut:
            connection.scope.cancel()
        for connection in cut:
            await connection.is_over.wait()

    @abstractmethod
    async def _carry(self, client: End, server: End) -> None:
        """Copies the data of one connection in both directions; when it returns, both are closed."""

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = Connection(anyio.CancelScope(), anyio.Event())
        self._connections.add(connection)
        try:
            with connection.scope, closed(End(reader, writer)) as client:
                await self._connect(client)
        except* (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self._connections.remove(connection)
            connection.is_over.set()

    async def _connect(self, client: End) -> None:
        with closed(await dial(self._host, self._server_port)) as server:
            await self._carry(client, server)


async def dial(host: str, port: int) -> End:
    loop = asyncio.get_running_loop()
    family, kind, protocol, _, address = (await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM))[0]
    place = socket.socket(family, kind, protocol)
    try:
        place.setblocking(False)
        place.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, HELD)  # a window made smaller later loses packets
        await loop.sock_connect(place, address)
        return End(*await asyncio.open_connection(sock=place, limit=HELD))
    except BaseException:
        place.close()
        raise


@contextmanager
def closed(end: End) -> Iterator[End]:
    """Closes an end with the block, and resets it when the block fails."""
    end.writer.transport.set_write_buffer_limits(0)  # `drain` returns when the system has taken everything
    try:
        yield end
    except BaseException:
        reset(end)
        raise
    finally:
        end.writer.transport.abort()


def reset(end: End) -> None:
    """Ends a connection at once and without the usual farewell: its other end gets an error."""
    if not end.writer.transport.is_closing():
        end.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
        end.writer.transport.abort()

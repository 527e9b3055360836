"""A way to Postgres on which things get lost: it stands between client and server, and a test says what it does."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import TypeAlias
from urllib.parse import urlsplit

NOTIFICATION = b"A"

Pump: TypeAlias = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Proxy:
    """Forwards connections to a server, whose messages it can lose."""

    def __init__(self, url: str) -> None:
        self._target = urlsplit(url)
        self._writers: set[asyncio.StreamWriter] = set()
        self._port = 0
        self.is_deaf = False
        self.loses_an_answer = False
        self.loses_a_request = False

    @property
    def url(self) -> str:
        place = f"{self._target.username}@127.0.0.1:{self._port}"
        return self._target._replace(netloc=place, query="sslmode=disable").geturl()

    def cut(self) -> None:
        """Ends every connection, as a network does: both sides only find out."""
        for writer in tuple(self._writers):
            writer.transport.abort()

    async def connected(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        assert self._target.hostname and self._target.port
        server, to_server = await asyncio.open_connection(self._target.hostname, self._target.port)
        self._writers |= {to_client, to_server}
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(self._ended(self._ask, client, to_server, to_client))
                    tasks.create_task(self._ended(self._answer, server, to_client, to_server))
        except* (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self._writers -= {to_client, to_server}

    async def _ended(
        self, pump: Pump, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, other: asyncio.StreamWriter
    ) -> None:
        """Moves what comes until it ends, and then ends both ways."""
        try:
            await pump(reader, writer)
        finally:
            writer.transport.abort()
            other.transport.abort()

    async def _ask(self, client: asyncio.StreamReader, to_server: asyncio.StreamWriter) -> None:
        while said := await client.read(65_536):
            if self.loses_a_request:
                self.loses_a_request = False
                return
            to_server.write(said)
            await to_server.drain()

    async def _answer(self, server: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        while True:
            head = await server.readexactly(5)
            body = await server.readexactly(int.from_bytes(head[1:]) - 4)
            if self.loses_an_answer:
                self.loses_an_answer = False
                return
            if not (self.is_deaf and head[:1] == NOTIFICATION):
                to_client.write(head + body)

    @asynccontextmanager
    async def open(self) -> AsyncIterator["Proxy"]:
        server = await asyncio.start_server(self.connected, "127.0.0.1", self._port)
        self._port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            self.cut()
            await server.wait_closed()

"""A way to Postgres on which things get lost: it stands between client and server, and a test says what it does."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias
from urllib.parse import urlsplit

import anyio

from tests.servers.relay import End, Relay

NOTIFICATION = b"A"

Pump: TypeAlias = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Proxy(Relay):
    """Forwards connections to a server, whose messages it can lose."""

    def __init__(self, url: str) -> None:
        self._target = urlsplit(url)
        assert self._target.hostname and self._target.port
        super().__init__(self._target.hostname, self._target.port)
        self.is_deaf = False
        self.loses_an_answer = False
        self.loses_a_request = False

    @property
    def url(self) -> str:
        place = f"{self._target.username}@127.0.0.1:{self._port}"
        return self._target._replace(netloc=place, query="sslmode=disable").geturl()

    async def _carry(self, client: End, server: End) -> None:
        async with anyio.create_task_group() as ways:
            ways.start_soon(self._ended, self._ask, client, server, ways.cancel_scope)
            ways.start_soon(self._ended, self._answer, server, client, ways.cancel_scope)

    async def _ended(self, pump: Pump, source: End, target: End, ways: anyio.CancelScope) -> None:
        """Moves what comes until it ends, and then ends both ways."""
        await pump(source.reader, target.writer)
        ways.cancel()

    async def _ask(self, client: asyncio.StreamReader, to_server: asyncio.StreamWriter) -> None:
        while data := await client.read(65_536):
            if self.loses_a_request:
                self.loses_a_request = False
                return
            to_server.write(data)
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

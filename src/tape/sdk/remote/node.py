"""The node behind a server's URL."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tape.core.app import ANY
from tape.sdk.nouns.node import AsyncNode
from tape.sdk.remote.channel import Channel
from tape.sdk.remote.ledgers import Ledgers


@asynccontextmanager
async def reached(url: str, app: str = ANY) -> AsyncIterator[AsyncNode]:
    """The nouns of a server, for the program of an app."""
    async with reached_ledgers(url) as ledgers:
        yield AsyncNode(ledgers, app)


@asynccontextmanager
async def reached_ledgers(url: str) -> AsyncIterator[Ledgers]:
    """The operations of a server."""
    async with Channel(url) as channel:
        yield Ledgers(channel)

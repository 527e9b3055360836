"""The node behind a server's URL."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tape.sdk.nouns.node import AsyncNode
from tape.sdk.remote.channel import Channel
from tape.sdk.remote.ledgers import Ledgers


@asynccontextmanager
async def reached(url: str) -> AsyncIterator[AsyncNode]:
    """The nouns of a server."""
    async with Channel(url) as channel:
        yield AsyncNode(Ledgers(channel))

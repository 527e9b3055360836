"""Ledgers behind a gRPC socket of this process."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tape.bus.journal import Journal
from tape.compose import ledgers_of
from tape.core.ports import Store
from tape.sdk.nouns.node import AsyncNode
from tape.sdk.remote.node import reached as connected
from tape.server.grpc.door import Door
from tape.server.grpc.hall import Hall
from tape.server.http.address import Address

ANY_PORT = Address("127.0.0.1", 0)


@asynccontextmanager
async def served(store: Store, journal: Journal, outbox: str = "") -> AsyncIterator[str]:
    """The URL of a server over a store, beside the outbox at a URL."""
    ledgers = ledgers_of(store, journal, outbox)
    door = Door(Hall(store=store, journal=journal, ledgers=ledgers, operations=ledgers), ANY_PORT)
    await door.open()
    assert door.address is not None
    try:
        yield f"tape://{door.address.host}:{door.address.port}"
    finally:
        await door.leave(0)


@asynccontextmanager
async def reached(store: Store, journal: Journal, outbox: str = "") -> AsyncIterator[AsyncNode]:
    """A client of such a server."""
    async with served(store, journal, outbox) as url, connected(url) as node:
        yield node

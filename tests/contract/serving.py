"""Ledgers behind a gRPC socket of this process."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tape.bus.journal import Journal
from tape.compose import ledgers_of
from tape.core.ports import Store
from tape.sdk.nouns.node import AsyncNode
from tape.sdk.remote.ledgers import connect
from tape.server.grpc.rpc_context import RpcContext
from tape.server.grpc.server import GrpcServer
from tape.server.http.address import Address

ANY_PORT = Address("127.0.0.1", 0)


@asynccontextmanager
async def served(store: Store, journal: Journal, outbox: str = "") -> AsyncIterator[str]:
    """The URL of a server over a store, beside the outbox at a URL."""
    ledgers = ledgers_of(store, journal, outbox)
    server = GrpcServer(RpcContext(store=store, journal=journal, ledgers=ledgers, operations=ledgers), ANY_PORT)
    await server.open()
    assert server.address is not None
    try:
        yield f"tape://{server.address.host}:{server.address.port}"
    finally:
        await server.leave(0)


@asynccontextmanager
async def reached(store: Store, journal: Journal, outbox: str = "") -> AsyncIterator[AsyncNode]:
    """A client of such a server."""
    async with served(store, journal, outbox) as url, connect(url) as node:
        yield node

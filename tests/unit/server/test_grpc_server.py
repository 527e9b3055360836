"""The gRPC listener: which port it opens, and what it does when the port is in use."""

import socket
from collections.abc import Iterator

import pytest

from tape.compose import open_store, run_journal
from tape.core.errors import UsageError
from tape.runs.ledgers import LocalLedgers
from tape.server.grpc.rpc_context import RpcContext
from tape.server.grpc.server import GrpcServer
from tape.server.http.address import Address


@pytest.fixture
def taken() -> Iterator[Address]:
    """An address that is in use."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield Address("127.0.0.1", listener.getsockname()[1])


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
async def test_any_free_port_is_reported(host: str) -> None:
    async with open_store("memory://") as store, run_journal(store) as journal:
        server = GrpcServer(
            RpcContext(store=store, journal=journal, ledgers=LocalLedgers(store, journal)), Address(host, 0)
        )
        await server.open()
        assert server.address is not None
        with socket.create_connection((host, server.address.port)):
            await server.leave(0)


async def test_a_port_that_was_asked_for_must_be_free(taken: Address) -> None:
    async with open_store("memory://") as store, run_journal(store) as journal:
        server = GrpcServer(RpcContext(store=store, journal=journal, ledgers=LocalLedgers(store, journal)), taken)

        with pytest.raises(UsageError, match="the port is taken"):
            await server.open()


async def test_the_usual_port_need_not_be_free(taken: Address) -> None:
    async with open_store("memory://") as store, run_journal(store) as journal:
        rpc = RpcContext(store=store, journal=journal, ledgers=LocalLedgers(store, journal))
        server = GrpcServer(rpc, taken, is_optional=True)
        await server.open()
        await server.leave()

        assert server.address is None

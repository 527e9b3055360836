"""The gRPC listener: which port it opens, and what it does when the port is in use."""

import socket
from collections.abc import Iterator

import pytest

from tape.compose import open_store, run_journal
from tape.core.errors import UsageError
from tape.runs.ledgers import Ledgers
from tape.server.grpc.door import Door
from tape.server.grpc.hall import Hall
from tape.server.http.address import Address


@pytest.fixture
def taken() -> Iterator[Address]:
    """An address that is in use."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield Address("127.0.0.1", listener.getsockname()[1])


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
async def test_any_free_port_is_reported(host: str) -> None:
    async with open_store("memory://") as store, run_journal(store) as journal:
        door = Door(Hall(store=store, journal=journal, ledgers=Ledgers(store, journal)), Address(host, 0))
        await door.open()
        assert door.address is not None
        with socket.create_connection((host, door.address.port)):
            await door.leave(0)


async def test_a_port_that_was_asked_for_must_be_free(taken: Address) -> None:
    async with open_store("memory://") as store, run_journal(store) as journal:
        door = Door(Hall(store=store, journal=journal, ledgers=Ledgers(store, journal)), taken)

        with pytest.raises(UsageError, match="the port is taken"):
            await door.open()


async def test_the_usual_port_need_not_be_free(taken: Address) -> None:
    async with open_store("memory://") as store, run_journal(store) as journal:
        hall = Hall(store=store, journal=journal, ledgers=Ledgers(store, journal))
        door = Door(hall, taken, may_stay_shut=True)
        await door.open()
        await door.leave()

        assert door.address is None

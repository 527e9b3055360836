"""The fault proxy does to a connection what the test plans, and nothing else."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest

from tests.deadlines import DEADLINE_S
from tests.servers.faults import Ending, FaultProxy, Plan, Trouble, WaitResult, always, fault_proxy, in_turn, seeded
from tests.servers.process import free_port
from tests.servers.relay import End

SENT = bytes(range(256)) * 4
MUCH = SENT * 16_000  # more than systems hold between two ends
CLEAN = WaitResult()


class Meeting:
    """A client and a server whose connection goes through the proxy, each with its own end of it."""

    def __init__(self, client: End, server: End, proxy: FaultProxy) -> None:
        self.client, self.server, self.proxy = client, server, proxy

    def direction(self, name: str) -> tuple[End, End]:
        """The sender and the receiver."""
        return (self.client, self.server) if name == "to_server" else (self.server, self.client)


@asynccontextmanager
async def meeting(plan: Plan) -> AsyncIterator[Meeting]:
    arrived: asyncio.Queue[End] = asyncio.Queue()
    server = await asyncio.start_server(lambda *end: arrived.put_nowait(End(*end)), "127.0.0.1", 0)
    with anyio.fail_after(DEADLINE_S):
        async with server, fault_proxy(server.sockets[0].getsockname()[1], plan) as proxy:
            client = await dial(proxy)
            served = await arrived.get()
            try:
                yield Meeting(client, served, proxy)
            finally:
                client.writer.transport.abort()
                served.writer.transport.abort()


@pytest.fixture(params=["to_server", "to_client"])
def direction(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def test_without_trouble_everything_passes_both_ways_until_each_side_has_ended() -> None:
    async with meeting(always(CLEAN)) as met:
        asked = await tell(met.client, met.server, MUCH)
        answered = await tell(met.server, met.client, MUCH[::-1])

        assert b"".join(asked) == MUCH and b"".join(answered) == MUCH[::-1]


async def test_a_reset_ends_both_sides_with_an_error(direction: str) -> None:
    async with meeting(always(suffering(direction, Trouble(ends_after=100)))) as met:
        sender, receiver = met.direction(direction)

        sender.writer.write(SENT)

        assert len(await until_reset(receiver)) <= 100
        assert await until_reset(sender) == b""


async def test_a_half_close_ends_one_direction_and_the_other_goes_on(direction: str) -> None:
    trouble = Trouble(ends_after=100, ending=Ending.HALF_CLOSE)
    async with meeting(always(suffering(direction, trouble))) as met:
        sender, receiver = met.direction(direction)

        sender.writer.write(SENT)
        heard = await receiver.reader.read()
        await send(receiver, b"go on")

        assert heard == SENT[:100] and await sender.reader.read() == b"go on"


async def test_a_sender_that_goes_on_after_a_half_close_notices_nothing(direction: str) -> None:
    trouble = Trouble(ends_after=100, ending=Ending.HALF_CLOSE)
    async with meeting(always(suffering(direction, trouble))) as met:
        sender, receiver = met.direction(direction)

        heard = await tell(sender, receiver, MUCH)

        assert b"".join(heard) == SENT[:100]


async def test_what_is_crumbled_arrives_whole_in_many_pieces(direction: str) -> None:
    async with meeting(always(suffering(direction, Trouble(at_most=1)))) as met:
        sender, receiver = met.direction(direction)

        pieces = await tell(sender, receiver, SENT)

        assert b"".join(pieces) == SENT
        assert len(pieces) > len(SENT) / 20  # the system may join some


async def test_a_stall_comes_at_its_byte_and_goes(direction: str) -> None:
    async with meeting(always(suffering(direction, Trouble(stalls_after=100, stall_s=0.2)))) as met:
        sender, receiver = met.direction(direction)

        await send(sender, SENT)
        before = await receiver.reader.readexactly(100)
        began = time.monotonic()
        after = await receiver.reader.read()

        assert before + after == SENT
        assert time.monotonic() - began > 0.15


async def test_a_stall_without_an_end_lasts_until_the_proxy_goes(direction: str) -> None:
    async with meeting(always(suffering(direction, Trouble(stalls_after=100)))) as met:
        sender, receiver = met.direction(direction)

        await send(sender, SENT)
        assert await receiver.reader.readexactly(100) == SENT[:100]
        await met.proxy.cut()

        assert await until_reset(receiver) == b""


async def test_a_thin_line_takes_its_time(direction: str) -> None:
    async with meeting(always(suffering(direction, Trouble(bytes_per_s=1_000)))) as met:
        sender, receiver = met.direction(direction)

        began = time.monotonic()
        pieces = await tell(sender, receiver, SENT[:300])

        assert time.monotonic() - began > 0.2
        assert b"".join(pieces) == SENT[:300] and len(pieces) >= 4


async def test_a_thin_line_holds_the_sender_back(direction: str) -> None:
    async with meeting(always(suffering(direction, Trouble(bytes_per_s=1_000)))) as met:
        sender, receiver = met.direction(direction)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(receiver.reader.read)
            with anyio.move_on_after(1) as sending:
                await send(sender, MUCH)
            tasks.cancel_scope.cancel()

        assert sending.cancelled_caught


async def test_the_other_direction_has_no_trouble(direction: str) -> None:
    async with meeting(always(suffering(direction, Trouble(stalls_after=0)))) as met:
        receiver, sender = met.direction(direction)

        assert b"".join(await tell(sender, receiver, SENT)) == SENT


async def test_connections_take_their_passages_in_turn_and_later_ones_are_clean() -> None:
    async with meeting(in_turn(CLEAN, suffering("to_server", Trouble(ends_after=0)))) as met:
        assert b"".join(await tell(met.client, met.server, SENT)) == SENT

        second = await dial(met.proxy)

        assert await until_reset(second) == b""
        assert met.proxy.connections == 2


async def test_a_server_that_is_not_there_is_a_reset() -> None:
    async with fault_proxy(free_port(), always(CLEAN)) as proxy:
        with anyio.fail_after(DEADLINE_S):
            assert await until_reset(await dial(proxy)) == b""


async def test_no_task_is_left_when_the_proxy_goes() -> None:
    before = asyncio.all_tasks()

    async with meeting(always(suffering("to_client", Trouble(stalls_after=0)))) as met:
        await send(met.server, SENT)

    assert asyncio.all_tasks() == before


def test_a_seed_says_what_every_connection_suffers() -> None:
    passages = [seeded(7)(number) for number in range(100)]

    assert passages == [seeded(7)(number) for number in range(100)]
    assert passages != [seeded(8)(number) for number in range(100)]


def test_a_seed_plans_every_trouble_sooner_or_later() -> None:
    suffered = [seeded(7)(number).to_client for number in range(100)]

    assert {trouble.at_most for trouble in suffered} == {1, 7, 1_000, 65_536}
    assert {trouble.ending for trouble in suffered if trouble.ends_after is not None} == set(Ending)
    assert {trouble.stalls_after is None for trouble in suffered} == {True, False}


def suffering(direction: str, trouble: Trouble) -> WaitResult:
    return WaitResult(to_server=trouble) if direction == "to_server" else WaitResult(to_client=trouble)


async def dial(proxy: FaultProxy) -> End:
    return End(*await asyncio.open_connection("127.0.0.1", proxy.port))


async def tell(sender: End, receiver: End, words: bytes) -> list[bytes]:
    """The pieces in which everything arrives that is sent."""
    pieces = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(send, sender, words)
        while piece := await receiver.reader.read(65_536):
            pieces.append(piece)
    return pieces


async def send(end: End, words: bytes) -> None:
    end.writer.write(words)
    await end.writer.drain()
    end.writer.write_eof()


async def until_reset(end: End) -> bytes:
    """What arrives before the error, without which this fails."""
    heard = b""
    with pytest.raises(ConnectionResetError):
        while piece := await end.reader.read(65_536):
            heard += piece
    return heard

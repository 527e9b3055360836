"""A program that runs one event loop after another, each with connections that end in the middle of their work."""

import asyncio
from collections.abc import Awaitable, Callable

import anyio
import pytest

import tape
from tape.sdk.nouns.node import AsyncNode
from tests.conftest import Scale
from tests.server.server import TapeServer
from tests.servers.grpc_gateway import grpc_gateway

pytestmark = pytest.mark.parametrize("store_url", ["memory"], indirect=True, scope="module")


async def connect(url: str) -> None:
    async with tape.aconnect(url):
        pass


async def call(url: str) -> None:
    async with tape.aconnect(url) as node:
        while True:
            await node.values.newest("n", "k")


async def read(url: str) -> None:
    async with tape.aconnect(url) as node, anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(_read_one, node)


async def leave_a_stream(url: str) -> None:
    async with tape.aconnect(url) as node:
        await node.events.stream()


async def read_from_a_gateway(url: str) -> None:
    async with grpc_gateway(url.removeprefix("tape://"), "TailBatches") as gateway:
        await read(gateway.url)


async def _read_one(node: AsyncNode) -> None:
    await anext(await node.events.stream())


@pytest.mark.parametrize("work", [connect, call, read, leave_a_stream, read_from_a_gateway])
def test_what_a_loop_leaves_under_way_does_not_fail_in_the_next(
    server: TapeServer, scale: Scale, work: Callable[[str], Awaitable[None]]
) -> None:
    errors: list[object] = []

    async def cancelled_after(moment_s: float) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))
        with anyio.move_on_after(moment_s):
            await work(server.rpc)

    for number in range(scale(40)):
        asyncio.run(cancelled_after(number % 20 * 0.001))

    assert errors == []

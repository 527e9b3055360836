"""A socket is aborted only when it accepts nothing."""

import asyncio
import socket
from collections.abc import AsyncIterator

import anyio
import pytest

from tape.server.sse import socket_writer
from tape.server.sse.socket_writer import SocketWriter
from tests.deadlines import DEADLINE_S
from tests.unit.server.sse.senders import ServerEnd


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket_writer, "TICK_S", 0.02)
    monkeypatch.setattr(socket_writer, "STALL_S", 0.2)


@pytest.fixture
async def ends() -> AsyncIterator[tuple[ServerEnd, socket.socket]]:
    near, far = socket.socketpair()
    near.setblocking(False)
    far.setblocking(False)
    line = ServerEnd()
    await asyncio.get_running_loop().create_connection(lambda: line, sock=near)
    yield line, far
    line.transport.abort()
    far.close()


async def test_a_stalled_socket_is_aborted(ends: tuple[ServerEnd, socket.socket]) -> None:
    line, _ = ends
    writer = SocketWriter(line, lambda: b"")

    writer.write(b"x" * 1_000_000)

    with anyio.fail_after(DEADLINE_S):
        await line.lost.wait()


async def test_a_socket_that_accepts_bytes_is_kept(ends: tuple[ServerEnd, socket.socket]) -> None:
    line, far = ends
    writer = SocketWriter(line, lambda: b"")
    writer.write(b"x" * 1_000_000)
    loop = asyncio.get_running_loop()
    until = loop.time() + 1

    while loop.time() < until and not line.lost.is_set():
        before = line.transport.get_write_buffer_size()
        await loop.sock_recv(far, 65_536)
        await anyio.sleep(0.001)
        writer.write(b"x" * (before + 1 - line.transport.get_write_buffer_size()))

    assert not line.lost.is_set()
    writer.close()

"""P9: a forged hint changes when a reader reads, and nothing else."""

import os
import socket
from contextlib import aclosing, suppress
from itertools import product
from pathlib import Path
from typing import Final

import anyio
import asyncpg
import pytest
import redis

from tests.contract.backends import Backend
from tests.contract.events import fill, make_event, seqs, upto
from tests.deadlines import DEADLINE_S

HINTS: Final = [b"", b"x", b"0", b"-1", b"3", b"9" * 18, b"9" * 5_000, b"\xff\x00", b"2 []", b"nan", b"1e9", b" 7 "]

with_a_channel = pytest.mark.parametrize("backend", ["sqlite", "postgres", "redis"], indirect=True)


@with_a_channel
async def test_p9_false_hints_forge_nothing_and_hide_nothing(backend: Backend) -> None:
    async with backend.two_nodes() as (writer, reader):
        await fill(writer, "r1", 1)
        async with aclosing(reader.stream(run_id="r1")) as of_run, aclosing(reader.stream()) as of_all:
            with anyio.fail_after(DEADLINE_S):
                found = [[await anext(stream)] for stream in (of_run, of_all)]
                for number in range(2, 6):
                    await hint(backend)
                    await writer.append(make_event(n=number))
                    await hint(backend)
                for entries, stream in zip(found, (of_run, of_all), strict=True):
                    entries += [await anext(stream) for _ in range(4)]

    assert [seqs(entries) for entries in found] == [upto(5)] * 2


async def hint(backend: Backend) -> None:
    """Sends every false hint on the store's channel."""
    if backend.name == "postgres":
        connection = await asyncpg.connect(backend.url)
        for text in HINTS:
            readable = text.replace(b"\0", b"").decode(errors="replace")
            await connection.execute("SELECT pg_notify('tape', $1)", readable)
        await connection.close()
    elif backend.name == "redis":
        with redis.Redis.from_url(backend.url) as client:
            for text in HINTS:
                client.publish("{tape}:grown", text)
    else:
        await datagrams(Path(f"{backend.url.removeprefix('sqlite:///')}.wake"))


async def datagrams(folder: Path) -> None:
    """Sends to every socket, once there is one."""
    while not (folder.is_dir() and any(folder.iterdir())):  # noqa: ASYNC110 - only asking can tell
        await anyio.sleep(0.005)
    place = os.open(folder, os.O_PATH)  # the path of a test's folder may be too long for an address
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as sender:
        for peer, text in product(folder.iterdir(), HINTS):
            with suppress(BlockingIOError):  # a queue that is full has enough
                sender.sendto(text, f"/proc/self/fd/{place}/{peer.name}")
    os.close(place)

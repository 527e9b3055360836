"""A server that is killed under its gRPC clients: what they repeat by its key happens once, and nothing is lost."""

from collections import Counter
from contextlib import aclosing
from pathlib import Path

import anyio
import pytest

import tape
from tape.core.errors import Unavailable
from tape.sdk.nouns.node import AsyncNode
from tests.conftest import Scale
from tests.deadlines import DEADLINE_S
from tests.server.conftest import Start
from tests.server.server import TapeServer

CLIENTS = 4


class Lives:
    """One server after the other, over one file and on one port."""

    def __init__(self, start: Start, store: str) -> None:
        self._start = start
        self._store = store
        self._server: TapeServer = start(store)
        self.url = self._server.rpc

    async def end_one(self) -> None:
        self._server.kill()
        port = self.url.rpartition(":")[2]
        self._server = await anyio.to_thread.run_sync(self._start, self._store, "--grpc", f"127.0.0.1:{port}")


@pytest.fixture
def lives(start: Start, tmp_path: Path) -> Lives:
    return Lives(start, f"sqlite:///{tmp_path}/tape.db")


async def test_what_is_repeated_by_its_key_is_written_once(lives: Lives, scale: Scale) -> None:
    writes, kills = scale(60), scale(3)
    written: list[str] = []

    async with anyio.create_task_group() as tasks:
        for client in range(CLIENTS):
            tasks.start_soon(write, lives.url, client, writes, written)
        for number in range(1, kills + 1):
            await until_written(written, number * CLIENTS * writes // (kills + 1))
            await lives.end_one()

    changes = await read_changes(lives.url, CLIENTS * writes)
    assert Counter(changes) == Counter(written) == Counter(dict.fromkeys(names(writes), 1))


async def test_a_tail_resumes_without_a_gap_or_a_duplicate(lives: Lives, scale: Scale) -> None:
    events, kills = scale(2_000), scale(3)
    seen: list[int] = []

    with anyio.fail_after(4 * DEADLINE_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(publish, lives.url, events)
            tasks.start_soon(follow, lives.url, events, seen)
            for number in range(1, kills + 1):
                await until_seen(seen, number * events // (kills + 1))
                await lives.end_one()

    assert seen == [*range(1, events + 1)]


async def publish(url: str, events: int) -> None:
    """Appends them in tens, each ten by its key until it is in."""
    async with tape.aconnect(url) as node:
        for first in range(0, events, 10):
            ten = [tape.Event(run_id="r", payload=number) for number in range(first, first + 10)]
            while True:
                try:
                    await node.events.append(ten, key=f"ten-{first}", open=True)
                    break
                except Unavailable:
                    await anyio.sleep(0.01)


async def follow(url: str, events: int, seen: list[int]) -> None:
    async with tape.aconnect(url) as node, aclosing(await node.events.stream()) as entries:
        while len(seen) < events:
            seen.append((await anext(entries)).global_seq)


async def until_seen(seen: list[int], count: int) -> None:
    while len(seen) < count:  # noqa: ASYNC110 - only looking can tell
        await anyio.sleep(0.001)


def names(writes: int) -> list[str]:
    return [f"{client}-{number}" for client in range(CLIENTS) for number in range(writes)]


async def write(url: str, client: int, writes: int, written: list[str]) -> None:
    async with tape.aconnect(url) as node:
        for number in range(writes):
            await surely(node, f"{client}-{number}")
            written.append(f"{client}-{number}")


async def surely(node: AsyncNode, name: str) -> None:
    """Repeats a request while its outcome is unknown."""
    with anyio.fail_after(DEADLINE_S):
        while True:
            try:
                await node.values.set("kills", name, 1, key=f"call-{name}")
            except Unavailable:
                await anyio.sleep(0.01)
            else:
                return


async def until_written(written: list[str], count: int) -> None:
    with anyio.fail_after(4 * DEADLINE_S):
        while len(written) < count:  # noqa: ASYNC110 - only looking can tell
            await anyio.sleep(0.005)


async def read_changes(url: str, count: int) -> list[str]:
    """Whose changes the journal has."""
    async with tape.aconnect(url) as node, aclosing(await node.events.stream(follow=False)) as entries:
        found = [entry.subject.rpartition("/")[2] async for entry in entries if entry.kind == "value"]
    assert len(found) >= count
    return found

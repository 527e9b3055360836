"""The ways to read a long run with Tape and with its peers; each checks that it has read everything."""

import asyncio
import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from time import perf_counter
from typing import Any, TypeAlias

import redis.asyncio

import tape
from tests.bench.users.by_hand import NewEvent, open_events
from tests.bench.users.events import PAYLOAD_JSON, TYPE, event
from tests.bench.users.http import HttpConnection
from tests.bench.users.kept import keep
from tests.bench.users.processes import script, surroundings
from tests.bench.users.servers import Served, kept_jetstream, redis_url, serving_at, serving_by_hand_at
from tests.bench.users.sse import SseClient
from tests.bench.users.stores import Store, empty_store

BATCH = 500
PAGE = 1_000
RUN = "orders"

Read: TypeAlias = Callable[[Served, int], float]


def served(read: Read, store: Store, entries: int) -> float:
    """Entries a second from a `tape serve` that nobody has read from."""
    with serving_at(_kept(_journal, store, entries)) as server:
        return entries / read(server, entries)


def served_by_hand(read: Read, store: Store, entries: int) -> float:
    with serving_by_hand_at(_kept(_table, store, entries)) as server:
        return entries / read(server, entries)


@contextmanager
def _journal(store: Store, entries: int) -> Iterator[str]:
    with empty_store(store) as url:
        asyncio.run(_fill_journal(url, entries))
        yield url


async def _fill_journal(url: str, entries: int) -> None:
    async with tape.open_journal(url) as journal:
        for first in range(0, entries, BATCH):
            await journal.append([event(RUN) for _ in range(min(BATCH, entries - first))], open=True)


@contextmanager
def _table(store: Store, entries: int) -> Iterator[str]:
    with empty_store(store) as url:
        asyncio.run(_fill_table(url, entries))
        yield url


async def _fill_table(url: str, entries: int) -> None:
    async with open_events(url) as events:
        for first in range(0, entries, BATCH):
            await events.append(RUN, [NewEvent(TYPE, PAYLOAD_JSON)] * min(BATCH, entries - first))


def _kept(filled: Callable[[Store, int], AbstractContextManager[str]], store: Store, entries: int) -> str:
    return keep(f"{filled.__name__} of {entries} in {store}", lambda: filled(store, entries))


def pages(server: Served, entries: int) -> float:
    return asyncio.run(_read_pages(server.port, entries))


async def _read_pages(port: int, entries: int) -> float:
    connection = await HttpConnection.open(port)
    began, after, seen = perf_counter(), 0, 0
    while seen < entries:
        page = await connection.get(f"/runs/{RUN}/events?after={after}&limit={PAGE}")
        after, seen = page["next"], seen + len(page["entries"])
    took = perf_counter() - began
    connection.close()
    assert (seen, after) == (entries, entries)
    return took


def sse(server: Served, entries: int) -> float:
    return asyncio.run(_read_sse(server.port, entries))


async def _read_sse(port: int, entries: int) -> float:
    began = perf_counter()
    client = await SseClient.open(port, f"/events?run_id={RUN}")
    await client.count(entries)
    took = perf_counter() - began
    client.close()
    return took


def grpc(server: Served, entries: int) -> float:
    return asyncio.run(_read_grpc(server.grpc, entries))


async def _read_grpc(url: str, entries: int) -> float:
    async with tape.aconnect(url) as client:
        began, seen = perf_counter(), 0
        async for _ in await client.events.stream(run_id=RUN, follow=False):
            seen += 1
        took = perf_counter() - began
    assert seen == entries
    return took


def sdk(server: Served, entries: int) -> float:
    with tape.connect(server.grpc) as client:
        began = perf_counter()
        seen = sum(1 for _ in client.events.stream(run_id=RUN, follow=False))
        took = perf_counter() - began
    assert seen == entries
    return took


def embedded(store: Store, entries: int) -> float:
    return entries / asyncio.run(_read_embedded(_kept(_journal, store, entries), entries))


async def _read_embedded(url: str, entries: int) -> float:
    async with tape.open_journal(url) as journal:
        began = perf_counter()
        seen = [entry.payload async for entry in journal.stream(run_id=RUN, follow=False)]
        took = perf_counter() - began
    assert len(seen) == entries
    return took


def select(store: Store, entries: int) -> float:
    return entries / asyncio.run(_read_table(_kept(_table, store, entries), entries))


async def _read_table(url: str, entries: int) -> float:
    async with open_events(url) as events:
        began, seen = perf_counter(), list[Any]()
        while page := await events.read(RUN, len(seen), PAGE):
            seen += [json.loads(row.payload) for row in page]
        took = perf_counter() - began
    assert len(seen) == entries
    return took


def command(store: Store, entries: int) -> float:
    url = _kept(_journal, store, entries)
    command = [script("tape"), "tail", "--run", RUN, "--no-follow", "--json", "--store", url]
    began = perf_counter()
    done = subprocess.run(command, env=surroundings(), stdout=subprocess.PIPE, check=True)
    took = perf_counter() - began
    assert done.stdout.count(b"\n") == entries
    return entries / took


def redis_stream(entries: int) -> float:
    return entries / asyncio.run(_read_redis(redis_url(), entries))


async def _read_redis(url: str, entries: int) -> float:
    client: Any  # whose answers are typed for every version of its protocol at once
    async with redis.asyncio.from_url(url) as client:
        for first in range(0, entries, BATCH):
            pipeline = client.pipeline()
            for _ in range(min(BATCH, entries - first)):
                pipeline.xadd(RUN, {"type": TYPE, "payload": PAYLOAD_JSON})
            await pipeline.execute()
        began, after, seen = perf_counter(), b"-", list[Any]()
        while page := await client.xrange(RUN, min=after, count=PAGE):
            seen += [json.loads(fields[b"payload"]) for _, fields in page]
            after = b"(" + page[-1][0]  # exclusive
        took = perf_counter() - began
    assert len(seen) == entries
    return took


def jetstream(entries: int) -> float:
    return entries / asyncio.run(_read_jetstream(kept_jetstream().url, entries))


async def _read_jetstream(url: str, entries: int) -> float:
    data = PAYLOAD_JSON.encode()
    connection = await import_module("nats").connect(url)
    stream = connection.jetstream()
    await stream.add_stream(name=RUN, subjects=[RUN], storage="file")
    for first in range(0, entries, BATCH):
        await asyncio.wait([await stream.publish_async(RUN, data) for _ in range(min(BATCH, entries - first))])
    began, seen = perf_counter(), list[Any]()
    reader = await stream.subscribe(RUN, ordered_consumer=True)
    while len(seen) < entries:
        seen.append(json.loads((await reader.next_msg(30)).data))
    took = perf_counter() - began
    await stream.delete_stream(RUN)
    await connection.close()
    return took

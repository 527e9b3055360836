"""Memory: of servers and workers that wait, of a server in use, and of one whose clients take nothing."""

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from functools import partial

import anyio

from tests.bench.compare import Comparison
from tests.bench.users.by_hand import DESCRIPTIONS
from tests.bench.users.events import TYPE, body, new_runs
from tests.bench.users.handled import handled
from tests.bench.users.handlers import warm_up
from tests.bench.users.http import HttpConnection
from tests.bench.users.queues import System, peers, tape_on
from tests.bench.users.servers import BY_HAND, TAPE_SERVE, Served, serving, serving_by_hand
from tests.bench.users.size import Size
from tests.bench.users.sse import SseClient, connect_without_reading
from tests.bench.users.stores import STORES, Store

AREA = "memory"
UNIT = "MiB"
CLIENTS = 64  # the most that `tape serve` allows on one run by default
EVENTS = 5_000
BATCH = 100
LARGE = 32 << 10  # a client's and a server's socket buffers hold less than all of the large events
LARGE_EVENTS = 1_000
QUIET_S = 2.0  # longer than a slow client may stay before it is evicted
TURNS = 3  # memory hardly differs from turn to turn
LEAST = 0.1  # MiB; what is less is nothing, and a ratio needs something

Serve = Callable[[Store], AbstractContextManager[Served]]


def comparisons(size: Size) -> list[Comparison]:
    return [*(row for store in STORES for row in _servers(store, size)), *_workers()]


def _servers(store: Store, size: Size) -> Iterator[Comparison]:
    by_hand = f"{BY_HAND}; {DESCRIPTIONS[store]}"
    row = partial(Comparison, area=AREA, unit=UNIT, table="users", ours_is=TAPE_SERVE, peer_is=by_hand, turns=TURNS)
    yield row(
        name=f"a server that has started, {store}, against a service by hand",
        ours=partial(started, serving, store), peer=partial(started, serving_by_hand, store),
    )  # fmt: skip
    yield row(
        name=f"after {EVENTS:,} events to {CLIENTS} SSE clients, {store}, against a service by hand",
        ours=partial(used, serving, store, size), peer=partial(used, serving_by_hand, store, size),
    )  # fmt: skip
    yield row(
        name=f"added by {LARGE_EVENTS:,} events of 32 KiB to {CLIENTS} SSE clients that take nothing, {store}, against "
        "a service by hand",
        ours=partial(untaken, serving, store, size), peer=partial(untaken, serving_by_hand, store, size),
    )  # fmt: skip


def _workers() -> Iterator[Comparison]:
    ours = tape_on("Postgres")
    mine = partial(waiting, ours)
    for name, peer in peers().items():
        yield Comparison(
            area=AREA, name=f"a worker that waits, Postgres, against {name}", unit=UNIT, ours=mine,
            peer=partial(waiting, peer), table="users", ours_is=ours.described, peer_is=peer.described,
            turns=TURNS,
        )  # fmt: skip
    sqlite = tape_on("SQLite")
    yield Comparison(
        area=AREA, name="a worker that waits, SQLite, against Postgres", unit=UNIT, ours=partial(waiting, sqlite),
        peer=mine, table="users", ours_is=sqlite.described, peer_is=ours.described,
        turns=TURNS,
    )  # fmt: skip


def started(serve: Serve, store: Store) -> float:
    with serve(store) as server:
        return server.program.rss_mib


def used(serve: Serve, store: Store, size: Size) -> float:
    with serve(store) as server:
        asyncio.run(_use(server, size.count(EVENTS // BATCH)))
        return server.program.rss_mib


async def _use(server: Served, batches: int) -> None:
    """Every client reads every event."""
    publisher, run_id = await _opened(server)
    clients = [await SseClient.open(server.port, f"/events?run_id={run_id}&slow=lag") for _ in range(CLIENTS)]
    async with asyncio.TaskGroup() as tasks:
        for client in clients:
            tasks.create_task(client.count(batches * BATCH))
        for _ in range(batches):
            await publisher.post(f"/runs/{run_id}/events", body(BATCH))
    publisher.close()
    for client in clients:
        client.close()


def untaken(serve: Serve, store: Store, size: Size) -> float:
    """What is not taken is in the server's memory, or the server has dropped it or its client."""
    with serve(store) as server, ExitStack() as stack:
        return asyncio.run(_untaken(server, stack, size.count(LARGE_EVENTS, least=20)))


async def _untaken(server: Served, stack: ExitStack, events: int) -> float:
    publisher, run_id = await _opened(server)
    for _ in range(CLIENTS):
        stack.enter_context(connect_without_reading(server.port, f"/events?run_id={run_id}"))
    large = json.dumps({"type": TYPE, "payload": {"text": "x" * LARGE}}).encode()
    await publisher.post(f"/runs/{run_id}/events", large)
    before = server.program.rss_mib
    for _ in range(events):
        await publisher.post(f"/runs/{run_id}/events", large)
    await anyio.sleep(QUIET_S)
    publisher.close()
    return max(server.program.rss_mib - before, LEAST)


async def _opened(server: Served) -> tuple[HttpConnection, str]:
    (run_id,) = new_runs(1)
    publisher = await HttpConnection.open(server.port)
    if server.grpc:  # `tape serve` wants a run to be opened; the service by hand knows no such thing
        await publisher.post("/runs", json.dumps({"run_id": run_id}).encode())
    return publisher, run_id


def waiting(system: System) -> float:
    """Of a worker with all its processes that has handled a few events and waits for more."""
    return asyncio.run(_waiting(system))


async def _waiting(system: System) -> float:
    with handled() as seen:
        async with system.run(1, seen.environment) as running:
            await warm_up(running, seen)
            return sum(worker.rss_mib for worker in running.workers)

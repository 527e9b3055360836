"""From a publish over HTTP to SSE clients: how late an event is, with one client of its run and with 64."""

import asyncio
import json
from collections.abc import Iterator
from time import perf_counter

from tests.bench.compare import Comparison
from tests.bench.users.by_hand import DESCRIPTIONS
from tests.bench.users.events import PAYLOAD, TYPE, new_runs
from tests.bench.users.figures import Figures, percentiles
from tests.bench.users.http import HttpConnection
from tests.bench.users.servers import BY_HAND, TAPE_SERVE, Served, kept_by_hand, kept_server
from tests.bench.users.size import Size
from tests.bench.users.sse import SseClient
from tests.bench.users.stores import STORES, Store
from tests.bench.users.versions import named

AREA = "publish to SSE"
CLIENTS = (1, 64)  # 64 on one run is the most that `tape serve` allows by default
RATE = 100
EVENTS = 200
WARM = 10


def comparisons(size: Size) -> list[Comparison]:
    return [row for store in STORES for clients in CLIENTS for row in _rows(store, clients, size)]


def _rows(store: Store, clients: int, size: Size) -> Iterator[Comparison]:
    events = size.count(EVENTS, least=5)
    ours = Figures(lambda: asyncio.run(_delays(kept_server(store), clients, events, opens=True)))
    peer = Figures(lambda: asyncio.run(_delays(kept_by_hand(store), clients, events, opens=False)))
    by_hand = f"{BY_HAND}, SSE by {named('sse-starlette')}; {DESCRIPTIONS[store]}"
    people = "1 client" if clients == 1 else f"{clients} clients"
    for cut in ("p50", "p99"):
        yield Comparison(
            area=AREA, name=f"{RATE} events/s, {people}, {store}, {cut}, against a service by hand", unit="ms",
            ours=ours.side(cut), peer=peer.side(cut), table="users",
            ours_is=f"{TAPE_SERVE}, POST /runs/RUN/events, GET /events?run_id=RUN", peer_is=by_hand,
        )  # fmt: skip


async def _delays(server: Served, clients: int, events: int, *, opens: bool) -> dict[str, float]:
    """Seconds from before the request that publishes an event until each client has read it; every client reads all."""
    (run_id,) = new_runs(1)
    publisher = await HttpConnection.open(server.port)
    if opens:
        await publisher.post("/runs", json.dumps({"run_id": run_id}).encode())
    streams = [await SseClient.open(server.port, f"/events?run_id={run_id}") for _ in range(clients)]
    total = WARM + events
    async with asyncio.TaskGroup() as tasks:
        reading = [tasks.create_task(_arrivals(stream, total)) for stream in streams]
        sent = await _publish(publisher, run_id, total)
    publisher.close()
    for stream in streams:
        stream.close()
    return percentiles([at - sent[n] for task in reading for n, at in enumerate(task.result()) if n >= WARM])


async def _publish(publisher: HttpConnection, run_id: str, count: int) -> list[float]:
    sent, began = [], perf_counter()
    for number in range(count):
        await asyncio.sleep(max(0.0, began + number / RATE - perf_counter()))
        request = json.dumps({"type": TYPE, "payload": {**PAYLOAD, "number": number}}).encode()
        sent.append(perf_counter())
        await publisher.post(f"/runs/{run_id}/events", request)
    return sent


async def _arrivals(stream: SseClient, count: int) -> list[float]:
    """When each event was read; a client that misses one never ends."""
    seen = []
    for number in range(count):
        data = await stream.event(TYPE)
        assert f'"number":{number},' in data.replace(" ", ""), f"event {number} is {data}"
        seen.append(perf_counter())
    return seen

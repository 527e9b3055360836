"""gRPC: a tail and an append against the bare library, and ledger operations by themselves."""

import asyncio
import subprocess
from collections.abc import Awaitable, Callable
from functools import partial
from time import perf_counter
from typing import Any

import grpc

from tape.core.event import Event
from tape.sdk.nouns.node import AsyncNode
from tape.sdk.remote.ledgers import connect
from tape.wire import tape_pb2 as pb
from tape.wire.messages.entries import event_message
from tests.bench import workload
from tests.bench.compare import Comparison, Goal
from tests.bench.grpc_servers import BATCH, HELD, started
from tests.bench.loop import run

AREA = "gRPC"
CALLS = 1_500
READERS = 32
BURSTS = 50


def comparisons() -> list[Comparison]:
    row = partial(Comparison, area=AREA)
    first = row(
        name="a tail of a journal in memory for the first who reads it, batches of 100, against a bare stream",
        unit="entries/s",
        ours=partial(_with, "ours", _catch_up),
        peer=partial(_with, "bare", _catch_up),
    )
    live = row(
        name="a live tail, 32 readers, bursts of 100, against bare streams beside the same appends",
        unit="entries/CPU-s",
        ours=partial(_with, "ours", _live),
        peer=partial(_with, "bare", _live),
        goal=Goal(">=", 0.5),
    )
    append = row(
        name="an append to a journal in memory, against an empty call",
        unit="calls/s",
        ours=partial(_with, "ours", partial(_append, 1)),
        peer=partial(_with, "bare", partial(_append, 1)),
        goal=Goal(">=", 0.7),
    )
    many = row(
        name="appends, 32 in flight, against empty calls",
        unit="calls/s",
        ours=partial(_with, "ours", partial(_append, 32)),
        peer=partial(_with, "bare", partial(_append, 32)),
    )
    ledgers = row(
        name="ledger operations over SQLite, 16 clients against 1",
        unit="operations/s",
        ours=partial(_ledgers, 16),
        peer=partial(_ledgers, 1),
    )
    return [first, live, append, many, ledgers]


def _with(
    kind: str, work: Callable[[Any, "subprocess.Popen[str]"], Awaitable[float]], store: str = "memory://"
) -> float:
    return run(_measure(kind, store, work))


async def _measure(kind: str, store: str, work: Callable[[Any, Any], Awaitable[float]]) -> float:
    with started(kind, store) as server:
        port = (await _line(server)).strip()
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            return await work(channel, server)


async def _catch_up(channel: Any, server: Any) -> float:
    """Nothing is cached; the bare stream has its bytes before anybody asks."""
    tail = channel.unary_stream(
        "/tape.v1.Tape/TailBatches", pb.TailBatchesRequest.SerializeToString, pb.EventBatch.FromString
    )
    began, seen = perf_counter(), 0
    async for batch in tail(pb.TailBatchesRequest(no_follow=True)):
        seen += len(batch.entries)
    assert seen == HELD
    return seen / (perf_counter() - began)


async def _live(channel: Any, server: Any) -> float:
    tail = channel.unary_stream("/tape.v1.Tape/TailBatches", pb.TailBatchesRequest.SerializeToString)
    streams = [tail(pb.TailBatchesRequest(from_global_seq=HELD)) for _ in range(READERS)]
    for stream in streams:
        await stream.initial_metadata()
    before = await _command(server, "cpu")
    for _ in range(BURSTS):
        after = await _command(server, f"burst {BATCH}")
        for stream in streams:
            await stream.read()
    after = await _command(server, "cpu")
    for stream in streams:
        stream.cancel()
    return READERS * BURSTS * BATCH / (after - before)


async def _append(at_once: int, channel: Any, server: Any) -> float:
    append = channel.unary_unary(
        "/tape.v1.Tape/Append", pb.AppendRequest.SerializeToString, pb.AppendResponse.FromString
    )
    request = pb.AppendRequest(events=[event_message(Event(run_id="run-0", payload=workload.TEXT))])
    request.events[0].ClearField("event_id")
    await append(request)

    async def some() -> None:
        for _ in range(CALLS // at_once):
            await append(request)

    began = perf_counter()
    async with asyncio.TaskGroup() as tasks:
        for _ in range(at_once):
            tasks.create_task(some())
    return CALLS / (perf_counter() - began)


def _ledgers(clients: int) -> float:
    with workload.database() as location:
        return run(_operations(f"sqlite:///{location.path}", clients))


async def _operations(store: str, clients: int) -> float:
    """A run begun, three values written, a decision and an effect recorded: seven operations each time."""
    with started("ours", store) as server:
        port = (await _line(server)).strip()
        rounds = 10 if clients > 1 else 30

        async def work(name: int) -> None:
            async with connect(f"tape://127.0.0.1:{port}") as node:
                await _live_through(node, name, rounds)

        began = perf_counter()
        async with asyncio.TaskGroup() as tasks:
            for name in range(clients):
                tasks.create_task(work(name))
        return clients * rounds * 7 / (perf_counter() - began)


async def _live_through(node: AsyncNode, name: int, rounds: int) -> None:
    for turn in range(rounds):
        begun = await node.runs.begin("bench", str(name), "s", str(turn), owner="w")
        run_id = begun.run.run_id
        for value in range(2):
            await node.values.set(f"bench-{name}", str(value), turn)
        await node.decisions.record(run_id, 0, model="m", response={"ok": True})
        effect = await node.effects.begin(run_id, "wire", {"usd": 7})
        await node.effects.complete(run_id, effect.idempotency_key, response={"ok": True})
        await node.runs.end(run_id)


async def _command(server: "subprocess.Popen[str]", words: str) -> float:
    assert server.stdin is not None
    print(words, file=server.stdin, flush=True)
    return float(await _line(server))


async def _line(server: "subprocess.Popen[str]") -> str:
    stdout: Any = server.stdout
    text: str = await asyncio.to_thread(stdout.readline)
    return text


if __name__ == "__main__":
    for each in comparisons():
        print(each.name, *(f"{side():,.0f}" for side in (each.ours, each.peer)), each.unit)

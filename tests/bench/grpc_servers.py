"""gRPC servers for the bench, each a process: ours over a journal, and the bare library with nothing behind it.

They print their port and then read commands: `burst N` publishes N events. After each command they print their CPU
time.
"""

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import grpc

from tape.bus.journal import Journal
from tape.compose import open_store, run_journal
from tape.core.event import Event
from tape.runs.ledgers import LocalLedgers
from tape.server.grpc.rpc_context import RpcContext
from tape.server.grpc.server import GrpcServer
from tape.server.http.address import Address
from tape.server.sse.subscribers import Subscribers
from tape.wire import tape_pb2 as pb
from tape.wire.messages.entries import in_batch
from tests.bench import workload
from tests.bench.loop import run

BATCH = 100
HELD = 20_000


@contextmanager
def started(kind: str, store: str) -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, "-m", "tests.bench.grpc_servers", kind, store]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, bufsize=1) as server:
        try:
            yield server
        finally:
            server.kill()


async def serve_ours(store_url: str) -> None:
    async with open_store(store_url) as store, run_journal(store) as journal:
        await _fill(journal)
        ledgers = LocalLedgers(store, journal)
        rpc = RpcContext(
            store=store, journal=journal, ledgers=ledgers, operations=ledgers, subscribers=Subscribers(2_000)
        )
        server = GrpcServer(rpc, Address("127.0.0.1", 0))
        await server.open()
        assert server.address is not None
        await _obey(server.address.port, lambda count: _burst(journal, count))


async def _fill(journal: Journal) -> None:
    """None of the events stays in memory but the journal: a server would not have it either."""
    for n in range(workload.RUNS):
        await journal.open_run(f"run-{n}")
    for first in range(0, HELD, BATCH):
        await journal.append([workload.event(number) for number in range(first, first + BATCH)])


async def _burst(journal: Journal, count: int) -> None:
    await journal.append([Event(run_id="run-0", payload=workload.TEXT) for _ in range(count)])


async def serve_bare() -> None:
    """Batches that were encoded before anybody asked; beside it a journal takes the same events."""
    async with open_store("memory://") as store, run_journal(store) as journal:
        await journal.open_run("run-0")
        await _serve_bare(journal)


async def _serve_bare(journal: Journal) -> None:
    batch = b"".join(map(in_batch, workload.entries(workload.events(BATCH))))
    burst = b"".join(
        map(in_batch, workload.entries([Event(run_id="run-0", payload=workload.TEXT) for _ in range(BATCH)]))
    )
    waiting: set[asyncio.Queue[bytes]] = set()

    async def tail(request: bytes, context: Any) -> None:
        if pb.TailBatchesRequest.FromString(request).no_follow:
            for _ in range(HELD // BATCH):
                await context.write(batch)
            return
        mine: asyncio.Queue[bytes] = asyncio.Queue()
        waiting.add(mine)
        await context.send_initial_metadata(())
        while True:
            await context.write(await mine.get())

    async def nothing(request: bytes, context: Any) -> bytes:
        return b""

    async def say(count: int) -> None:
        await _burst(journal, count)
        for each in waiting:
            each.put_nowait(burst)

    server: Any = grpc.aio.server()
    handlers = {
        "TailBatches": grpc.unary_stream_rpc_method_handler(tail),
        "Append": grpc.unary_unary_rpc_method_handler(nothing),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("tape.v1.Tape", handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    await _obey(port, say)


async def _obey(port: int, say: Any) -> None:
    print(port, flush=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        word, _, count = line.partition(" ")
        if word == "burst":
            await say(int(count))
        print(time.process_time(), flush=True)


if __name__ == "__main__":
    run(serve_ours(sys.argv[2]) if sys.argv[1] == "ours" else serve_bare())

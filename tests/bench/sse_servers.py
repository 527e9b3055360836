"""The servers that send to the listeners, each a process of its own: `python -m tests.bench.sse_servers KIND`.

It prints its port, then for every line "ROUNDS BURST PAUSE_MS" says so much to each of the runs and prints the CPU
seconds it has used so far, and the memory it has.
"""

import asyncio
import json
import resource
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from time import process_time
from typing import Any, Final

import uvloop

from tape.core.codec import JsonValue

RUNS: Final = 16
PAYLOAD: Final[dict[str, JsonValue]] = {
    "turn": 17,
    "agent": "a-3",
    "text": "the scouts are back from the hills and say there is gold" * 2,
}
FRAME: Final = (
    b"id: 123456\nevent: message\ndata: "
    + json.dumps({
        "id": 123456, "v": 1, "type": "message", "data": PAYLOAD, "run_id": "run-3", "seq": 123456,
        "global_seq": 1234567, "kind": "event", "subject": "/tape/event/message/run-3", "ts_ms": 1794725169173,
        "schema_version": 1, "trace_id": "", "span_id": "", "parent_span_id": "",
    }).encode()
    + b"\n\n"
)  # fmt: skip

Say = Callable[[int], Awaitable[None]]


@asynccontextmanager
async def ours() -> AsyncIterator[tuple[int, Say]]:
    """`tape serve` over memory, with its producer in the same process."""
    from tape.bus.journal import Journal
    from tape.compose import open_store, run_journal
    from tape.core.event import Event
    from tape.runs.forks import Forks
    from tape.server.http.address import Address
    from tape.server.node import Node
    from tape.server.service import serve
    from tape.server.sse.subscribers import Subscribers

    async def say(journal: Journal, burst: int) -> None:
        await journal.append([Event(run_id=f"run-{n}", payload=PAYLOAD) for n in range(RUNS) for _ in range(burst)])

    async with open_store("memory://") as store, run_journal(store) as journal, asyncio.TaskGroup() as tasks:
        for n in range(RUNS):
            await journal.open_run(f"run-{n}")
        node = Node(journal=journal, runs=store.runs, forks=Forks(journal), subscribers=Subscribers(2000))
        bound: asyncio.Future[Address] = asyncio.get_running_loop().create_future()
        serving = tasks.create_task(serve(node, Address("127.0.0.1", 0), (), bound.set_result))
        yield (await bound).port, lambda burst: say(journal, burst)
        serving.cancel()


class _Bare(asyncio.Protocol):
    def __init__(self, by_run: dict[str, list["_Bare"]]) -> None:
        self._by_run = by_run
        self.transport: Any = None
        self.room = asyncio.Event()
        self.room.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        run_id = data.split(b"run_id=")[1].split(b"&")[0].split(b" ")[0].decode()
        self._by_run.setdefault(run_id, []).append(self)
        self.transport.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        )

    def pause_writing(self) -> None:
        self.room.clear()

    def resume_writing(self) -> None:
        self.room.set()


@asynccontextmanager
async def bare() -> AsyncIterator[tuple[int, Say]]:
    """The least there can be: bytes that are ready, written to every connection."""
    by_run: dict[str, list[_Bare]] = {}
    server = await asyncio.get_running_loop().create_server(lambda: _Bare(by_run), "127.0.0.1", 0)
    chunk = b"%x\r\n%b\r\n" % (len(FRAME), FRAME)

    async def say(burst: int) -> None:
        for listeners in by_run.values():
            for _ in range(burst):
                for listener in listeners:
                    await listener.room.wait()
                    listener.transport.write(chunk)

    yield server.sockets[0].getsockname()[1], say
    server.close()


@asynccontextmanager
async def starlette() -> AsyncIterator[tuple[int, Say]]:
    """sse-starlette on uvicorn, as its users write it: a queue for each client."""
    import socket

    import uvicorn
    from sse_starlette.sse import EventSourceResponse
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.routing import Route

    by_run: dict[str, list[asyncio.Queue[dict[str, str]]]] = {}
    text = FRAME.split(b"data: ")[1].strip().decode()

    async def events(request: Request) -> EventSourceResponse:
        queue: asyncio.Queue[dict[str, str]] = asyncio.Queue()
        by_run.setdefault(request.query_params["run_id"], []).append(queue)

        async def stream() -> AsyncIterator[dict[str, str]]:
            while True:
                yield await queue.get()

        return EventSourceResponse(stream(), sep="\n")

    async def say(burst: int) -> None:
        for queues in by_run.values():
            for n in range(burst):
                for queue in queues:
                    queue.put_nowait({"id": str(n), "event": "message", "data": text})

    bound = socket.socket()
    bound.bind(("127.0.0.1", 0))
    bound.listen(2048)  # who comes before it serves waits
    app = Starlette(routes=[Route("/events", events)])
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical", http="httptools", backlog=2048))
    async with asyncio.TaskGroup() as tasks:
        serving = tasks.create_task(server.serve([bound]))
        yield bound.getsockname()[1], say
        serving.cancel()


def started(kind: str) -> "subprocess.Popen[str]":
    """One of them, as a process."""
    program = [sys.executable, "-m", "tests.bench.sse_servers", kind]
    return subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


async def _main(kind: str) -> None:
    async with {"ours": ours, "bare": bare, "starlette": starlette}[kind]() as (port, say):
        print(port, flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            rounds, burst, pause_ms = map(int, line.split())
            for _ in range(rounds):
                await say(burst)
                await asyncio.sleep(pause_ms / 1000)
            print(process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, flush=True)


if __name__ == "__main__":
    uvloop.run(_main(sys.argv[1]))

"""What a reader that comes late pays: a long replay, and what a thousand readers that take nothing cost in memory."""

import asyncio
import sqlite3
import tempfile
from functools import cache, partial
from pathlib import Path
from time import perf_counter

from tape.compose import open_journal
from tape.core.event import Event
from tape.store.statements import statements
from tests.bench.compare import Comparison, Goal
from tests.bench.loop import run
from tests.bench.sse import CLIENTS, line, send_load, warm_up
from tests.bench.sse_listeners import Crowd
from tests.bench.sse_servers import PAYLOAD, RUNS, started
from tests.server.server import TapeServer

AREA = "SSE, slow and late"
ENTRIES = 100_000
BATCH = 1_000
UNREAD = (60, 50, 20)


def comparisons() -> list[Comparison]:
    unread = partial(Comparison, area=AREA, unit="MiB")
    return [
        Comparison(area=AREA, name="replay of 100,000 against a raw read", unit="entries/s", ours=replay, peer=raw),
        unread(
            name="memory for 3,000 events to 1,000 clients that take nothing, against sse-starlette",
            ours=partial(memory, "ours"),
            peer=partial(memory, "starlette"),
            goal=Goal("<=", 0.5),
        ),
    ]


@cache
def journal_file() -> Path:
    """A journal with one long run."""
    path = Path(tempfile.mkdtemp(prefix="tape-bench-")) / "tape.db"
    run(_fill(f"sqlite:///{path}"))
    return path


async def _fill(url: str) -> None:
    async with open_journal(url) as journal:
        for _ in range(ENTRIES // BATCH):
            await journal.append([Event(run_id="run", payload=PAYLOAD) for _ in range(BATCH)], open=True)


def replay() -> float:
    """Entries a second that a client is sent, from the first one on."""
    path = journal_file()
    with TapeServer(path.parent, f"sqlite:///{path}") as server:
        return run(_replay(server.port))


async def _replay(port: int) -> float:
    crowd = Crowd()
    began = perf_counter()
    (transport,) = await crowd.come(port, ["/events?run_id=run&from_seq=1"])
    await crowd.wait(ENTRIES)
    transport.close()
    return ENTRIES / (perf_counter() - began)


def raw() -> float:
    """The same rows straight from SQLite."""
    select = statements("sqlite", "journal.sql")["run_after"]
    with sqlite3.connect(journal_file()) as connection:
        began = perf_counter()
        rows = connection.execute(select, {"run_id": "run", "after": 0, "limit": ENTRIES}).fetchall()
        return len(rows) / (perf_counter() - began)


def memory(kind: str) -> float:
    """How much a server grows."""
    return run(_memory(kind))


async def _memory(kind: str) -> float:
    with started(kind) as server:
        port, crowd = int(await line(server)), Crowd()
        transports = await crowd.come(port, [f"/events?run_id=run-{n % RUNS}&slow=lag" for n in range(CLIENTS)])
        await warm_up(server, crowd)
        _, before = await send_load(server, (0, 0, 0))
        for transport in transports:
            transport.pause_reading()
        await send_load(server, UNREAD)
        await asyncio.sleep(1)
        _, after = await send_load(server, (0, 0, 0))
        server.kill()
    return max(float(after) - float(before), 1.0)

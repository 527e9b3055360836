"""What a reader that comes late pays: a long replay."""

import sqlite3
import tempfile
from functools import cache
from pathlib import Path
from time import perf_counter

from tape.compose import open_journal
from tape.core.event import Event
from tape.store.statements import statements
from tests.bench.compare import Comparison
from tests.bench.loop import run
from tests.bench.sse_listeners import Crowd
from tests.bench.sse_servers import PAYLOAD
from tests.server.server import TapeServer

AREA = "SSE, late"
ENTRIES = 100_000
BATCH = 1_000


def comparisons() -> list[Comparison]:
    name = "replay of 100,000 against a raw read"
    return [Comparison(area=AREA, name=name, unit="entries/s", ours=replay, peer=raw)]


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

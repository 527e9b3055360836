"""What it costs to begin a child of a long run: by lineage, and by copying what it inherits."""

import asyncio
import sys
import tempfile
import time
from pathlib import Path

from tape import Event, Journal, open_journal

ENTRIES = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
CHILDREN = 10


async def fill(journal: Journal, run_id: str) -> None:
    for first in range(0, ENTRIES, 1_000):
        events = [Event(run_id=run_id, payload={"number": first + n, "text": "x" * 200}) for n in range(1_000)]
        await journal.append(events, open=True)


async def copy(journal: Journal, run_id: str) -> None:
    """The parent's events appended again to a run of its own; they get new positions and new ids."""
    events = [
        Event(run_id=run_id, type=entry.type, payload=entry.payload)
        async for entry in journal.stream(run_id="parent", follow=False)
    ]
    for first in range(0, len(events), 1_000):
        await journal.append(events[first : first + 1_000], open=True)


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tape.db"
        async with open_journal(f"sqlite:///{path}") as journal:
            await fill(journal, "parent")
            ways = {"lineage": lambda n: journal.fork("parent", ENTRIES), "copy": lambda n: copy(journal, f"copy-{n}")}
            for name, begin in ways.items():
                head, began = await journal.head(), time.perf_counter()
                for n in range(CHILDREN):
                    await begin(n)
                took_ms = (time.perf_counter() - began) * 1000 / CHILDREN
                print(
                    f"{name:8} {took_ms:9.2f} ms a child, {(await journal.head() - head) // CHILDREN:7,} entries each"
                )


asyncio.run(main())

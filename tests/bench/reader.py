"""A reader that says how late each entry came; as a program it is the reader in another process."""

import sys
from collections.abc import Callable
from contextlib import aclosing
from time import monotonic_ns

from tape.bus.journal import Journal
from tape.compose import open_journal
from tape.core.event import Event
from tests.bench.loop import run

RUN = "run"


def stamped() -> Event:
    """An event that says when it was made, on the clock that all processes of a machine share."""
    return Event(run_id=RUN, payload=monotonic_ns())


async def delays(journal: Journal, count: int, began: Callable[[], None] = lambda: None) -> list[int]:
    """How late so many entries came, in nanoseconds."""
    late: list[int] = []
    async with aclosing(journal.stream(run_id=RUN)) as stream:
        async for entry in stream:
            late.append(monotonic_ns() - int(entry.payload_json or 0))
            if len(late) == 1:
                began()
            if len(late) == count:
                break
    return late


async def _report(url: str, count: int) -> None:
    async with open_journal(url) as journal:
        print(*await delays(journal, count, lambda: print("reading", flush=True)))


if __name__ == "__main__":
    run(_report(sys.argv[1], int(sys.argv[2])))

"""A subscriber on Redis that says how late each entry came; as a program it is the one in another process."""

import sys
from collections.abc import Callable
from time import monotonic_ns
from typing import Any

import redis.asyncio

from tests.bench.loop import run

STREAM = "bench"


async def xread_delays(client: Any, count: int, began: Callable[[], None] = lambda: None) -> list[int]:
    """How late so many entries came, in nanoseconds."""
    late: list[int] = []
    last = b"0"
    while len(late) < count:
        ((_, entries),) = await client.xread({STREAM: last}, block=10_000)
        late += [monotonic_ns() - int(fields[b"p"]) for _, fields in entries]
        if last == b"0":
            began()
        last, _ = entries[-1]
    return late


async def _report(url: str, count: int) -> None:
    async with redis.asyncio.from_url(url) as client:
        print(*await xread_delays(client, count, lambda: print("reading", flush=True)))


if __name__ == "__main__":
    run(_report(sys.argv[1], int(sys.argv[2])))

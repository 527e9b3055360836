"""When events are due; as a program it is their source, which says each at its moment by the system's clock."""

import random
import sys
import time
from collections.abc import Iterator

PAUSE_NS = 20_000_000
TICK_NS = 1_000_000  # of a loop's timers


def dues(rate: int, count: int) -> Iterator[int]:
    """So many events, the first a little later and anywhere between two ticks."""
    start = time.monotonic_ns() + PAUSE_NS + random.randrange(TICK_NS)
    return (start + number * 1_000_000_000 // rate for number in range(count))


def _say(rate: int, count: int, beginnings: int) -> None:
    for _ in range(beginnings):
        for due in dues(rate, count):
            time.sleep(max(0, due - time.monotonic_ns()) / 1e9)
            print(due, flush=True)


if __name__ == "__main__":
    _say(*map(int, sys.argv[1:]))

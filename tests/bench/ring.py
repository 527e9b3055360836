"""What a push costs when the ring is full, by how much it holds."""

from functools import cache, partial
from itertools import count
from time import process_time

from tape.bus.tail import Tail
from tape.core.event import Entry, Event
from tape.core.ids import Epoch, GlobalSeq, RunId
from tests.bench.compare import Comparison, Goal
from tests.bench.loop import run

AREA = "tail"
SMALL, LARGE = 8_000, 1_000_000
PUSHES = LARGE // 4  # a ring lets go of its past an eighth at a time, and the large one must pay for that too


def comparisons() -> list[Comparison]:
    small, large = partial(push, SMALL), partial(push, LARGE)
    name = "push into 1,000,000 entries against 8,000"
    return [Comparison(area=AREA, name=name, unit="CPU µs/push", ours=large, peer=small, goal=Goal("<=", 1.2))]


def push(capacity: int) -> float:
    """Microseconds of CPU time for each entry pushed alone into a full ring that one reader has joined."""
    tail = _full(capacity)
    entries = _entries(tail.head, PUSHES)
    started = process_time()
    for entry in entries:
        tail.push((entry,))
    return (process_time() - started) / PUSHES * 1e6


@cache
def _full(capacity: int) -> Tail:
    """Filled once and then kept full, because filling takes longer than what is measured."""
    return run(_filled(capacity))


async def _filled(capacity: int) -> Tail:
    tail = Tail(GlobalSeq(0), capacity, 1 << 40)
    tail.join(RunId("run"))
    tail.push(_entries(GlobalSeq(0), capacity))
    return tail


def _entries(head: GlobalSeq, amount: int) -> list[Entry]:
    event = Event(run_id="run", payload={"n": 1})
    return [event.at(place, place, 1, 0, Epoch(1)) for place, _ in zip(count(head + 1), range(amount))]

"""What it costs to make an entry as a frozen data class, and as a named tuple."""

import timeit
from dataclasses import make_dataclass

from tape.core.event import Columns, Entry, Event
from tape.core.ids import Epoch

EVENT = Event(run_id="r1", payload={"n": 1})
FROZEN = make_dataclass("Frozen", Columns._fields, frozen=True, slots=True, kw_only=True)
ROW = EVENT.at(1, 1, 0, 0, Epoch(1))
NAMED = ROW._asdict()
ROUNDS = 200_000


def best(statement: object) -> float:
    return min(timeit.repeat(statement, number=ROUNDS, repeat=5)) / ROUNDS * 1e6  # type: ignore[arg-type]


print(f"frozen data class from names   {best(lambda: FROZEN(**NAMED)):.2f} µs")
print(f"event.at(…)                    {best(lambda: EVENT.at(1, 1, 0, 0, Epoch(1))):.2f} µs")
print(f"entry from a row that was read {best(lambda: Entry._make(tuple(ROW))):.2f} µs")

"""Whether a row of a long journal costs the lake what one of a short one costs: `python -m tests.bench.scale [N]…`.

It takes as much disk as so many entries do, some 6 GB for ten million.
"""

import sys
from collections.abc import Sequence

from tape.core.event import Entry
from tape.core.ids import Epoch
from tape.store.sqlite.location import Location
from tape.store.sqlite.migrate import migrate
from tape.store.statements import statements
from tests.bench import filling
from tests.bench.workload import RUNS, database, event

SIZES = (100_000, 3_000_000, 10_000_000)
PART = 50_000
MOST = 1.5


def main(sizes: Sequence[int]) -> None:
    """Prints a line for each size; ends with 1 if a row of any costs too much."""
    costs = {}
    with database() as location:
        assert location.path is not None
        _fill(location, max(sizes))
        filling.cost(PART, location.path)  # what starts with the first job is nobody's cost
        for size in sizes:
            costs[size] = filling.cost(size, location.path)
            ratio = costs[size] / costs[sizes[0]]
            print(
                f"{size:>12,} rows  {costs[size]:8.2f} µs/row  {1e6 / costs[size]:10,.0f} rows/s  {ratio:5.2f}×",
                flush=True,
            )
    sys.exit(any(cost / costs[sizes[0]] > MOST for cost in costs.values()))


def _fill(location: Location, rows: int) -> None:
    """A journal with so many rows, a part at a time."""
    connection = location.connect()
    migrate(connection)
    insert = statements("sqlite", "append.sql")["insert_entry"]
    for first in range(0, rows, PART):
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(insert, map(_entry, range(first, min(rows, first + PART))))
        connection.execute("COMMIT")
    connection.close()


def _entry(number: int) -> Entry:
    return event(number).at(number + 1, number // RUNS + 1, 1, 0, Epoch(1))


if __name__ == "__main__":
    main([int(size) for size in sys.argv[1:]] or SIZES)

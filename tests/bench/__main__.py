"""Measures Tape against its peers: `python -m tests.bench [NAME [SIZE]]`, printed as it goes, into bench/latest.json.

The paths of users come first, then the parts.
"""

import json
import sys
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from typing import Final

from tests.bench import conditions, matching, predicates, report
from tests.bench.compare import Comparison, Row, compare
from tests.bench.users import kept
from tests.bench.users.size import Size
from tests.bench.workload import FOLDER

TURNS: Final = 5
USERS: Final = ("publish", "stream", "handlers", "functions", "outbox", "replay", "memory", "growth")
PARTS: Final = (
    "sqlite",
    "fanout",
    "ring",
    "latency",
    "postgres",
    "logs",
    "delivery",
    "forks",
    "grpc",
    "sse",
    "sse_replay",
    "lake",
    "filling",
    "history",
    "sweep",
    "outbox",
    "tasks",
    "run_pages",
)
MODULES: Final[tuple[Callable[[int], list[Row]], ...]] = (matching.measure, predicates.measure)


def main(only: str = "", size: str = "1") -> None:
    scale = Size(float(size or 1))
    print(*(f"{name} {value}" for name, value in conditions.now().items()), sep=", ")
    print(report.heading())
    rows = []
    for row in measure(only, scale):
        print(report.line(row), flush=True)
        rows.append(row)
    if not rows:
        raise SystemExit(f"nothing that is measured is called {only!r}")
    if scale.is_whole:
        _save(only, rows)
    else:
        print(f"nothing is saved: a size of {scale.factor:g} tries the bench and measures nothing")
    print(*report.missed(rows), sep="\n")


def _save(only: str, rows: list[Row]) -> None:
    FOLDER.mkdir(exist_ok=True)
    latest = FOLDER / "latest.json"
    before = json.loads(latest.read_text())["rows"] if only and latest.exists() else []
    found = {"rows": report.merged(before, rows)}
    latest.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n")


def measure(only: str, size: Size) -> Iterator[Row]:
    """Rows with the conditions they were measured in, table by table."""
    for comparisons in _tables(size):
        asked = [each for each in comparisons() if is_about(only, each.table, each.area, each.name)]
        yield from _in_conditions(compare(asked, TURNS), size)
        kept.release()
    for module in MODULES if size.is_whole else ():
        rows = (row for row in module(TURNS) if is_about(only, row["table"], row["area"], row["name"]))
        yield from _in_conditions(rows, size)


def _in_conditions(rows: Iterator[Row], size: Size) -> Iterator[Row]:
    """The conditions are those before the first turn, because the bench itself is a load."""
    found = {**conditions.now(), "size": size.factor}
    for row in rows:
        turns = row.pop("turns")
        yield {**row, "conditions": {**found, "turns": turns}}


def _tables(size: Size) -> Iterator[Callable[[], list[Comparison]]]:
    for name in USERS:
        if module := _module(f"users.{name}"):
            yield partial(module, size)
    for name in PARTS if size.is_whole else ():  # parts have one size
        if module := _module(name):
            yield module


def _module(name: str) -> Callable[..., list[Comparison]] | None:
    try:
        comparisons: Callable[..., list[Comparison]] = import_module(f"tests.bench.{name}").comparisons
    except ModuleNotFoundError as error:
        print(f"{name} is left out: {error.name} is not installed")
        return None
    return comparisons


def is_about(only: str, *names: object) -> bool:
    return only.lower() in " ".join(map(str, names)).lower()


if __name__ == "__main__":
    main(*sys.argv[1:3])

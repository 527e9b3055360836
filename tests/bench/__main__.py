"""Measures Tape against its peers: `python -m tests.bench [NAME]`, printed as it goes and kept in bench/latest.json."""

import json
import os
import platform
import sqlite3
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from importlib import import_module
from typing import Any, Final

from tests.bench import loop, matching, predicates
from tests.bench.compare import Comparison, Result, Row, compare
from tests.bench.workload import FOLDER

REPETITIONS: Final = 5
TABLES: Final = (
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


def main(only: str = "") -> None:
    conditions = _conditions()
    print(*(f"{name} {value}" for name, value in conditions.items()), sep=", ")
    print(_columns("", "ours", "peer", "", "ratio", "", "goal", ""))
    results = []
    for result in measure(only):
        print(_line(result), flush=True)
        results.append(result)
    if not results:
        raise SystemExit(f"nothing that is measured is called {only!r}")
    FOLDER.mkdir(exist_ok=True)
    report = _report(conditions, results)
    latest = FOLDER / "latest.json"
    if only and latest.exists():
        report = _merged(json.loads(latest.read_text()), report)
    latest.write_text(json.dumps(report, indent=2, ensure_ascii=False) + "\n")
    print(*_missed([result.row for result in results]), sep="\n")


def measure(only: str) -> Iterator[Result]:
    for table in _tables():
        yield from compare([each for each in table() if is_about(only, each.area, each.name)], REPETITIONS)
    for module in MODULES:
        yield from (Result(row) for row in module(REPETITIONS) if is_about(only, row["area"], row["name"]))


def _tables() -> Iterator[Callable[[], list[Comparison]]]:
    for name in TABLES:
        try:
            module = import_module(f"tests.bench.{name}")
        except ModuleNotFoundError as error:
            print(f"{name} is left out: {error.name} is not installed")
        else:
            yield module.comparisons


def is_about(only: str, area: object, name: object) -> bool:
    return only.lower() in f"{area} {name}".lower()


def _conditions() -> dict[str, object]:
    return {
        "measured at": datetime.now(UTC).isoformat(timespec="seconds"),
        "Python": platform.python_version(),
        "SQLite": sqlite3.sqlite_version,
        "loop": loop.NAME,
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "machine": platform.machine(),
        "repetitions": REPETITIONS,
    }


def _report(conditions: dict[str, object], results: Sequence[Result]) -> dict[str, object]:
    spreads = {f"{result.row['area']}: {result.row['name']}": result.spread for result in results if result.spread}
    return {"conditions": conditions, "rows": [result.row for result in results], "lowest and highest ratio": spreads}


def _merged(before: dict[str, Any], now: dict[str, Any]) -> dict[str, object]:
    """What was measured before, with the rows of now in their places; the conditions are those of now."""
    rows = {(row["area"], row["name"]): row for row in (*before["rows"], *now["rows"])}
    spreads = {**before["lowest and highest ratio"], **now["lowest and highest ratio"]}
    return {"conditions": now["conditions"], "rows": list(rows.values()), "lowest and highest ratio": spreads}


def _line(result: Result) -> str:
    row = result.row
    spread = f"[{result.spread[0]:g}–{result.spread[1]:g}]" if result.spread else ""
    verdict = {True: "met", False: "MISSED", None: ""}[row["met"] if isinstance(row["met"], bool) else None]
    figures = (
        f"{row['ours']:,.6g}",
        f"{row['peer']:,.6g}",
        row["unit"],
        row["ratio"],
        spread,
        row["goal"] or "",
        verdict,
    )
    return _columns(f"{row['area']}: {row['name']}", *figures)


def _columns(name: str, *rest: object) -> str:
    widths = (10, 10, -16, 7, -14, -8, -6)
    cells = (
        f"{cell!s:>{width}}" if width > 0 else f"{cell!s:<{-width}}" for cell, width in zip(rest, widths, strict=True)
    )
    return f"{name:<82} {' '.join(cells)}".rstrip()


def _missed(rows: Sequence[Row]) -> Iterator[str]:
    """What was promised and not measured this time; a machine that is busy with something else is a usual reason."""
    judged = [row for row in rows if row["goal"] is not None]
    yield f"{sum(row['met'] is True for row in judged)} of {len(judged)} goals met"
    for row in judged:
        if row["met"] is not True:
            yield f"missed: {row['area']}: {row['name']}: {row['ratio']}, and the goal is {row['goal']}"


if __name__ == "__main__":
    main(*sys.argv[1:2])

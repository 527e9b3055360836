"""Measures Tape against its peers: `python -m tests.bench [NAME]`, printed as it goes and kept in bench/latest.json."""

import json
import os
import platform
import sqlite3
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import version
from typing import Final

from tests.bench import fanout, latency, loop, matching, predicates, ring, sqlite
from tests.bench.compare import Comparison, Result, Row, compare
from tests.bench.workload import FOLDER

REPETITIONS: Final = 5
BLOCKS: Final = (sqlite, fanout, ring, latency)
MODULES: Final = (matching, predicates)


def main(only: str = "") -> None:
    conditions = _conditions()
    print(*(f"{name} {value}" for name, value in conditions.items()), sep=", ")
    results = []
    for result in measure(only):
        print(_line(result), flush=True)
        results.append(result)
    if not results:
        raise SystemExit(f"nothing to measure is called {only!r}")
    _write(conditions, results)
    print(*_summary([result.row for result in results]), sep="\n")


def measure(only: str) -> Iterator[Result]:
    for block in BLOCKS:
        chosen = [each for each in block.comparisons() if each.is_about(only)]
        yield from compare(chosen, REPETITIONS)
    for module in MODULES:
        rows = module.measure(REPETITIONS)
        yield from (Result(row) for row in rows if only.lower() in f"{row['area']} {row['name']}".lower())

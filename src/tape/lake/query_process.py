"""Answers one question about a lake, alone in a process that may not grow beyond its bounds.

DuckDB counts what its tables hold and not what its functions build, so that the system has to hold the line.
"""

import json
import math
import resource
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from tape.core.errors import UsageError
from tape.lake.confinement import confine
from tape.store.duckdb.parquet import NO_SPILLING, Parquet

ADDRESSES: Final = 3 << 30  # of which DuckDB's own libraries and threads take about one
MOST_BYTES: Final = 4 << 20
CPU_S: Final = 30
BOUNDS: Final[dict[str, str | int]] = {"memory_limit": "512MB", "threads": 2, **NO_SPILLING}


def answer(order: dict[str, Any]) -> dict[str, Any]:
    """What the lake says, as far as it may be told; or why it says nothing."""
    views = {name: [Path(part) for part in parts] for name, parts in order["views"].items()}
    try:
        with Parquet(Path(order["folder"]), order["files"], views=views, bounds=BOUNDS) as parquet:
            names, rows = parquet.query(order["question"], order["most"] + 1)
        told = bounded(rows[: order["most"]])
    except UsageError as error:
        return {"refused": str(error)}
    except MemoryError:
        return {"refused": "the answer needs more memory than a question may take"}
    return {"columns": names, "rows": told, "is_whole": len(told) == len(rows)}


def bounded(rows: Iterable[Iterable[Any]]) -> list[list[Any]]:
    """The first rows, as JSON says them, for as long as they are not too much."""
    told: list[list[Any]] = []
    room = MOST_BYTES
    for row in rows:
        values = [plain(value) for value in row]
        room -= len(json.dumps(values))
        if room < 0:
            break
        told.append(values)
    return told


def plain(value: Any) -> Any:
    """A value as JSON can say it."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case dict():
            return {str(key): plain(each) for key, each in value.items()}
        case list() | tuple():
            return [plain(each) for each in value]
        case bytes():
            return value.hex()
        case _:
            return str(value)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    confine()
    sys.stdout.write(json.dumps(answer(json.load(sys.stdin))))

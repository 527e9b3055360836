"""Runs one SQL query on a lake in a process of its own, with limits on memory and CPU time.

DuckDB's own memory limit counts its tables but not what its functions build, so the operating system limits both.
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

ADDRESSES: Final = 3 << 30  # of address space; DuckDB's libraries and threads take about 1 GiB of it
MOST_BYTES: Final = 4 << 20
CPU_S: Final = 30
BOUNDS: Final[dict[str, str | int]] = {"memory_limit": "512MB", "threads": 2, **NO_SPILLING}


def answer(order: dict[str, Any]) -> dict[str, Any]:
    """The first rows of the result, or why the query was refused."""
    views = {name: [Path(part) for part in parts] for name, parts in order["views"].items()}
    try:
        with Parquet(Path(order["folder"]), order["files"], views=views, bounds=BOUNDS) as parquet:
            names, rows = parquet.query(order["sql"], order["most"] + 1)
        bounded = bounded_rows(rows[: order["most"]])
    except UsageError as error:
        return {"refused": str(error)}
    except MemoryError:
        return {"refused": "the result needs more memory than a query may take"}
    return {"columns": names, "rows": bounded, "is_whole": len(bounded) == len(rows)}


def bounded_rows(rows: Iterable[Iterable[Any]]) -> list[list[Any]]:
    """The first rows as JSON values, up to the byte limit."""
    kept: list[list[Any]] = []
    bytes_left = MOST_BYTES
    for row in rows:
        values = [json_value(value) for value in row]
        bytes_left -= len(json.dumps(values))
        if bytes_left < 0:
            break
        kept.append(values)
    return kept


def json_value(value: Any) -> Any:
    """Converts a value of DuckDB or Arrow to one that JSON has."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case dict():
            return {str(key): json_value(each) for key, each in value.items()}
        case list() | tuple():
            return [json_value(each) for each in value]
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

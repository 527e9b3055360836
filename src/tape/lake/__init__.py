"""The lake: the journal's history as Parquet files, and Spark's source and sink."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tape.lake.cold.persist import persist_to_duckdb
    from tape.lake.cold.reading import stream_cold
    from tape.lake.cold.sink import DuckDBEventSink
    from tape.lake.search.dry_run import dry_run
    from tape.lake.session import open_spark
    from tape.lake.source import register

_HOME = {
    "DuckDBEventSink": "tape.lake.cold.sink",
    "dry_run": "tape.lake.search.dry_run",
    "open_spark": "tape.lake.session",
    "persist_to_duckdb": "tape.lake.cold.persist",
    "register": "tape.lake.source",
    "stream_cold": "tape.lake.cold.reading",
}

__all__ = ["DuckDBEventSink", "dry_run", "open_spark", "persist_to_duckdb", "register", "stream_cold"]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'tape.lake' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__

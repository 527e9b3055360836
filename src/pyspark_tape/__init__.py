"""Spark discovers data sources in modules called `pyspark_*` with a `DefaultSource`."""

from tape.lake.source import TapeDataSource as DefaultSource

__all__ = ["DefaultSource"]

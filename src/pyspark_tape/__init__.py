"""Where Spark looks for sources by itself: any module called `pyspark_*` with a `DefaultSource`."""

from tape.lake.source import TapeDataSource as DefaultSource

__all__ = ["DefaultSource"]

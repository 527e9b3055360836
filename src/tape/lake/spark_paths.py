"""Local paths as Spark takes them: not URL-encoded, because Hadoop decodes nothing, and with wildcards escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def spark_path(path: Path) -> str:
    """The path of a file or folder to write, whatever its name."""
    return f"file://{path.absolute()}"


def read_parquet(spark: SparkSession, paths: Iterable[Path], schema: str) -> DataFrame:
    """Reads Parquet files.

    Wildcards in paths are escaped here, because Spark's own option against them reads each of several files twice.
    """
    escaped = (re.sub(r"([\\*?{}\[\]])", r"\\\1", spark_path(path)) for path in paths)
    return spark.read.schema(schema).parquet(*escaped)

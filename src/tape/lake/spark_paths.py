"""Files of this machine as Spark names them: the path as it is, since Hadoop decodes nothing, without wildcards."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def spark_path(path: Path) -> str:
    """A file or folder that is written, whatever its name."""
    return f"file://{path.absolute()}"


def read_parquet(spark: SparkSession, paths: Iterable[Path], schema: str) -> DataFrame:
    """The rows of these files.

    What would be a wildcard in a path is escaped: with Spark's own option against wildcards it reads each of several
    such files twice.
    """
    escaped = (re.sub(r"([\\*?{}\[\]])", r"\\\1", spark_path(path)) for path in paths)
    return spark.read.schema(schema).parquet(*escaped)

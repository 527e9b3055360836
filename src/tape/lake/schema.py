"""The columns of the journal, as Spark and Arrow name their types."""

from collections.abc import Sequence
from typing import Final

from tape.core.event import Columns
from tape.store.ranges import BYTES, INTEGERS, arrow_schema

__all__ = ["COLUMNS", "arrow_schema", "spark_ddl", "spark_type"]

COLUMNS: Final = Columns._fields


def spark_ddl(columns: Sequence[str] = COLUMNS) -> str:
    """The columns as `DataFrameReader.schema` takes them."""
    return ", ".join(f"{column} {spark_type(column)}" for column in columns)


def spark_type(column: str) -> str:
    if column in INTEGERS:
        return "BIGINT"
    return "BINARY" if column in BYTES else "STRING"

"""Writes tables of a lake without Spark."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from tape.core.ids import GlobalSeq
from tape.lake.derived_tables import commit_files, folder_of
from tape.lake.log import DATA
from tape.lake.schema import QUARANTINE, TABLES

KINDS: Final = {"STRING": pa.string(), "BIGINT": pa.int64(), "DOUBLE": pa.float64()}


def write_table(lake: Path, name: str, rows: Sequence[Mapping[str, Any]], through: int) -> None:
    """Makes a table, with the columns that were declared for it."""
    declared = [column.split() for column in TABLES.get(name, QUARANTINE).split(", ")]
    schema = pa.schema([(column, KINDS[kind]) for column, kind in declared])
    table = pa.Table.from_pylist([{column: row.get(column) for column, _ in declared} for row in rows], schema)
    path = folder_of(lake, name) / DATA / "rows" / "part.parquet"
    path.parent.mkdir(parents=True)
    pq.write_table(table, path)
    commit_files(folder_of(lake, name), {path: pq.read_metadata(path)}, GlobalSeq(through))

"""Tables of a lake without Spark: rows of plain Python, as of a position."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from deltalake import CommitProperties, Transaction, write_deltalake

from tape.lake.derived import DEFINED, folder_of
from tape.lake.log import APP
from tape.lake.schema import DEFINITION, QUARANTINE, TABLES

KINDS: Final = {"STRING": pa.string(), "BIGINT": pa.int64(), "DOUBLE": pa.float64()}


def write_table(lake: Path, name: str, rows: Sequence[Mapping[str, Any]], through: int) -> None:
    """Makes a table, with the columns that were declared for it."""
    declared = [column.split() for column in TABLES.get(name, QUARANTINE).split(", ")]
    schema = pa.schema([(column, KINDS[kind]) for column, kind in declared])
    table = pa.Table.from_pylist([{column: row.get(column) for column, _ in declared} for row in rows], schema)
    properties = CommitProperties(app_transactions=[Transaction(APP, through), Transaction(DEFINED, DEFINITION)])
    folder = folder_of(lake, name)
    folder.mkdir(parents=True)
    write_deltalake(folder, table, mode="overwrite", commit_properties=properties)

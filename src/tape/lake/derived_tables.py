"""Derived tables on disk: each a Delta table that is replaced as a whole, and that says as of which position it is.

A table is written from what the lake held at one version, and committed with ("tape", that position). Whoever reads it
meanwhile goes on reading the old files, which stay for a while.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import cache
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.transaction import AddAction

from tape.core.errors import NotFound, UsageError, quoted
from tape.core.ids import GlobalSeq
from tape.lake.compaction import GRACE
from tape.lake.errors import write_error
from tape.lake.log import APP, DATA, LOG, DeltaLog, LakeSnapshot, delta_errors, sync_to_disk
from tape.lake.schema import DEFINITION, TABLES, spark_ddl
from tape.lake.spark_paths import read_parquet, spark_path

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DEFINED: Final = "tape.definition"
FOLDER: Final = "tables"
QUARANTINED: Final = "quarantine"
NAMES: Final = (*TABLES, QUARANTINED)


class DerivedTable(NamedTuple):
    """What a table holds: everything up to a position, as one definition has it."""

    name: str
    through: GlobalSeq
    definition: int
    rows: int
    files: tuple[Path, ...]


class TableUpdate(NamedTuple):
    """A table that is as of a position now, and whether it had to be written for that."""

    name: str
    through: GlobalSeq
    rows: int
    is_new: bool


def check_name(name: str) -> str:
    if name not in NAMES:
        raise UsageError(f"there is no table {quoted(name)}; there are {', '.join(NAMES)}")
    return name


def folder_of(lake: Path, name: str) -> Path:
    """Where a table is; quarantine is none of the tables, it is what they left."""
    return lake / QUARANTINED if name == QUARANTINED else lake / FOLDER / name


def find_table(lake: Path, name: str) -> DerivedTable | None:
    """A table as it is now, or None if it was never made."""
    folder = folder_of(lake, name)
    if not any((folder / LOG).glob("*.json")):
        return None
    with delta_errors(folder / LOG):
        table = DeltaTable(folder)
        through, definition = table.transaction_version(APP), table.transaction_version(DEFINED)
        added = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    files = tuple(folder / action["path"] for action in added)
    rows = sum(action["num_records"] for action in added)
    return None if through is None else DerivedTable(name, GlobalSeq(through), definition or 0, rows, files)


def existing_tables(lake: Path) -> list[DerivedTable]:
    """The tables that were made."""
    return [table for name in NAMES if (table := find_table(lake, name)) is not None]


def rows_of(lake: Path, name: str) -> list[dict[str, Any]]:
    """What a table says, row by row; NotFound if it was never made."""
    table = find_table(lake, name)
    if table is None:
        raise NotFound(f"there is no table {name!r} in {str(lake)!r}; tape lake tables makes it")
    rows: list[dict[str, Any]] = [row for file in table.files for row in pq.read_table(file).to_pylist()]
    return rows


def are_current(log: DeltaLog, names: Sequence[str] = NAMES) -> bool:
    """Whether the tables say all that is in the lake, as this version of Tape would."""
    through = log.snapshot().through
    return all(_is_current(find_table(log.table.parent, name), through) for name in names)


def update_tables(
    log: DeltaLog, open_spark: Callable[[], AbstractContextManager[SparkSession]], names: Sequence[str] = NAMES
) -> Iterator[TableUpdate]:
    """Brings tables up to what the lake holds now; a session is opened when there is one to write."""
    lake, now = log.table.parent, log.snapshot()
    with ExitStack() as stack:
        journal = cache(lambda: _journal(stack.enter_context(open_spark()), log, now))
        for name in names:
            found = find_table(lake, name)
            if found is None or not _is_current(found, now.through):
                rows = _replace(lake, name, _table(name, journal()), now.through)
                yield TableUpdate(name, now.through, rows, True)
            else:
                yield TableUpdate(name, found.through, found.rows, False)


def _is_current(found: DerivedTable | None, through: int) -> bool:
    return found is not None and (found.through, found.definition) == (through, DEFINITION)


def _journal(spark: SparkSession, log: DeltaLog, now: LakeSnapshot) -> DataFrame:
    if not now.files:
        return spark.createDataFrame([], spark_ddl())
    return read_parquet(spark, (log.table / file.path for file in now.files), spark_ddl())


def _table(name: str, journal: DataFrame) -> DataFrame:
    from tape.lake import tables

    return tables.quarantine(journal) if name == QUARANTINED else tables.EVERY[name](journal)


def _replace(lake: Path, name: str, frame: DataFrame, through: GlobalSeq) -> int:
    """Writes a table beside what there is, and puts it in its place in one commit; the number of its rows."""
    folder = folder_of(lake, name)
    part = folder / DATA / f"{through:020}-{uuid4().hex[:12]}"
    try:
        ordered = frame.repartition(1).sortWithinPartitions(*frame.columns)
        ordered.write.option("compression", "zstd").parquet(spark_path(part))
        footers = {path: pq.read_metadata(path) for path in part.glob("*.parquet")}
    except Exception as error:
        shutil.rmtree(part, ignore_errors=True)
        raise write_error(error, f"the table {name}") from error
    commit_files(folder, footers, through)
    return sum(footer.num_rows for footer in footers.values())


def commit_files(folder: Path, footers: dict[Path, Any], through: GlobalSeq) -> None:
    """Puts files that were written in the place of what a table holds; what is committed is on disk."""
    for path in (*footers, *{path.parent for path in footers}, folder / DATA):
        sync_to_disk(path)
    _commit(folder, footers, through)
    _forget(folder)


def _commit(folder: Path, footers: dict[Path, Any], through: GlobalSeq) -> None:
    schema = next(iter(footers.values())).schema.to_arrow_schema().remove_metadata()
    added: list[Any] = [_add(folder, path, footer) for path, footer in footers.items()]
    properties = CommitProperties(app_transactions=[Transaction(APP, through), Transaction(DEFINED, DEFINITION)])
    with delta_errors(folder / LOG):
        is_there = any((folder / LOG).glob("*.json"))
        table = DeltaTable(folder) if is_there else DeltaTable.create(folder, schema, name=folder.name)
        table.create_write_transaction(added, "overwrite", schema, commit_properties=properties)
    sync_to_disk(folder / LOG)


def _add(folder: Path, path: Path, footer: Any) -> AddAction:
    return AddAction(
        path=path.relative_to(folder).as_posix(),
        size=path.stat().st_size,
        partition_values={},
        modification_time=int(time() * 1000),
        data_change=True,
        stats=json.dumps({"numRecords": footer.num_rows}),
    )


def _forget(folder: Path) -> None:
    """Deletes what was replaced, or left by somebody who was killed, once nobody can be reading it any more."""
    with delta_errors(folder / LOG):
        named = {Path(uri).parent.name for uri in DeltaTable(folder).file_uris()}
    before = time() - GRACE.total_seconds()
    for part in (folder / DATA).iterdir():
        if part.name not in named and part.stat().st_mtime < before:
            shutil.rmtree(part, ignore_errors=True)

"""Derived tables on disk: each is a Delta table that is replaced as a whole and records its position.

A table is computed from one version of the lake and committed with the transaction ("tape", that version's last
position). A reader of the old version keeps its files for a grace period.
"""

from __future__ import annotations

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
from tape.lake.log import APP, DATA, LOG, DeltaLog, LakeSnapshot, add_action, delta_errors, sync_to_disk
from tape.lake.schema import DEFINITION, TABLES, spark_ddl
from tape.lake.spark_paths import read_parquet, spark_path

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DEFINED: Final = "tape.definition"
FOLDER: Final = "tables"
QUARANTINED: Final = "quarantine"
NAMES: Final = (*TABLES, QUARANTINED)


class DerivedTable(NamedTuple):
    """A table on disk: computed from everything up to a position, with one version of its definition."""

    name: str
    through: GlobalSeq
    definition: int
    rows: int
    files: tuple[Path, ...]


class TableUpdate(NamedTuple):
    """A table that is up to date with a position, and whether it was written for that."""

    name: str
    through: GlobalSeq
    rows: int
    is_new: bool


def check_name(name: str) -> str:
    if name not in NAMES:
        raise UsageError(f"there is no table {quoted(name)}; there are {', '.join(NAMES)}")
    return name


def folder_of(lake: Path, name: str) -> Path:
    """The folder of a table; quarantine is beside the tables."""
    return lake / QUARANTINED if name == QUARANTINED else lake / FOLDER / name


def find_table(lake: Path, name: str) -> DerivedTable | None:
    """The table as it is now, or None if it was never written."""
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
    """The tables that were written."""
    return [table for name in NAMES if (table := find_table(lake, name)) is not None]


def rows_of(lake: Path, name: str) -> list[dict[str, Any]]:
    """The rows of a table; NotFound if it was never written."""
    table = find_table(lake, name)
    if table is None:
        raise NotFound(f"there is no table {name!r} in {str(lake)!r}; tape lake tables makes it")
    rows: list[dict[str, Any]] = [row for file in table.files for row in pq.read_table(file).to_pylist()]
    return rows


def are_current(log: DeltaLog, names: Sequence[str] = NAMES) -> bool:
    """Whether the tables have the lake's position and this program's definition."""
    through = log.snapshot().through
    return all(_is_current(find_table(log.table.parent, name), through) for name in names)


def update_tables(
    log: DeltaLog, open_spark: Callable[[], AbstractContextManager[SparkSession]], names: Sequence[str] = NAMES
) -> Iterator[TableUpdate]:
    """Updates tables to the lake's newest version; opens a session only if a table has to be written."""
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

    return tables.quarantine(journal) if name == QUARANTINED else tables.DEFINITIONS[name](journal)


def _replace(lake: Path, name: str, frame: DataFrame, through: GlobalSeq) -> int:
    """Writes a table's new files and replaces the old ones in one commit; returns the number of rows."""
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
    """Replaces the files of a table by new ones in one commit; syncs both before it returns."""
    for path in (*footers, *{path.parent for path in footers}, folder / DATA):
        sync_to_disk(path)
    _commit(folder, footers, through)
    _delete_replaced(folder)


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
    name, size = path.relative_to(folder).as_posix(), path.stat().st_size
    return add_action(name, size, {"numRecords": footer.num_rows}, is_new=True)


def _delete_replaced(folder: Path) -> None:
    """Deletes files that were replaced, or left by a killed process, after the grace period."""
    with delta_errors(folder / LOG):
        named = {Path(uri).parent.name for uri in DeltaTable(folder).file_uris()}
    before = time() - GRACE.total_seconds()
    for part in (folder / DATA).iterdir():
        if part.name not in named and part.stat().st_mtime < before:
            shutil.rmtree(part, ignore_errors=True)

"""Parquet files by their footers: which positions they hold; merging files; syncing them to disk."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from tape.core.errors import Corrupt
from tape.core.ids import GlobalSeq
from tape.lake.log import DATA, LakeFile, check_ranges, sync_to_disk
from tape.lake.schema import COLUMNS, arrow_schema

POSITION: Final = "global_seq"
GROUP_BYTES: Final = 8 << 20  # per row group: a reader loads one to return a page
GROUP_ROWS: Final = 20_000


class RowGroup(NamedTuple):
    """A row group of a file; it holds every entry from `first` to `last`."""

    path: str
    number: int
    first: GlobalSeq
    last: GlobalSeq


def check_written(table: Path, folder: Path, after: int, through: int) -> list[LakeFile]:
    """Lists and syncs the files in a folder; raises Corrupt unless they hold exactly `after + 1` to `through`."""
    footers = [(path, pq.read_metadata(path)) for path in sorted(folder.rglob("*.parquet"))]
    files = sorted(
        (file_of(table, path, footer) for path, footer in footers if footer.num_rows), key=lambda file: file.first
    )
    check_ranges(files, after, through)
    for file in files:
        sync_to_disk(table / file.path)
    for place in (folder, table / DATA, table):
        sync_to_disk(place)
    return files


def file_of(table: Path, path: Path, footer: Any) -> LakeFile:
    """Describes a file by its footer; raises Corrupt unless it holds a range of positions, each once."""
    found = row_groups(str(path), footer)
    file = LakeFile(path.relative_to(table).as_posix(), found[0].first, found[-1].last, path.stat().st_size)
    if footer.num_rows != file.rows:
        raise Corrupt(f"{path} has {footer.num_rows:,} rows for the positions {file.first} to {file.last}")
    return file


def row_groups(path: str, footer: Any) -> list[RowGroup]:
    """The non-empty row groups; raises Corrupt if there is a gap between two."""
    found = [_row_group(path, footer, number) for number in range(footer.num_row_groups)]
    held = [group for group in found if group is not None]
    for before, group in pairwise(held):
        if group.first != before.last + 1:
            raise Corrupt(f"{path} jumps from position {before.last} to {group.first}")
    return held


def merge(table: Path, files: Sequence[LakeFile], path: Path) -> LakeFile:
    """Writes the entries of several files into one, in constant memory."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with pq.ParquetWriter(path, arrow_schema(), compression="zstd") as writer:
        for part in _regrouped(table, files):
            writer.write_table(part, row_group_size=GROUP_ROWS)
    return file_of(table, path, pq.read_metadata(path))


def _regrouped(table: Path, files: Sequence[LakeFile]) -> Iterable[pa.Table]:
    """Collects the rows of files into row groups of the target size."""
    kept: list[pa.Table] = []
    for file in files:
        with pq.ParquetFile(table / file.path) as source:
            for number in range(source.num_row_groups):
                kept.append(source.read_row_group(number).select(COLUMNS).cast(arrow_schema()))
                if sum(part.nbytes for part in kept) >= GROUP_BYTES or sum(map(len, kept)) >= GROUP_ROWS:
                    yield pa.concat_tables(kept)
                    kept = []
    if kept:
        yield pa.concat_tables(kept)


def _row_group(path: str, footer: Any, number: int) -> RowGroup | None:
    group = footer.row_group(number)
    if not group.num_rows:
        return None
    statistics = group.column(footer.schema.names.index(POSITION)).statistics
    if statistics is None or not statistics.has_min_max or statistics.max - statistics.min + 1 != group.num_rows:
        raise Corrupt(f"row group {number} of {path} does not hold a range of positions")
    return RowGroup(path, number, GlobalSeq(statistics.min), GlobalSeq(statistics.max))

"""Parquet files by their footers: which positions they hold, and that they are on disk."""

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
GROUP_BYTES: Final = 8 << 20  # of a row group: what a reader holds to give a page
GROUP_ROWS: Final = 20_000


class Group(NamedTuple):
    """A row group: its number in the file and the positions it holds."""

    number: int
    first: GlobalSeq
    last: GlobalSeq


def check_written(table: Path, folder: Path, after: int, through: int) -> list[LakeFile]:
    """The files that were written into a folder, on disk, if they are exactly the positions after one to another."""
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
    """A file as its footer describes it: a closed range, each position once, or Corrupt."""
    found = groups(path, footer)
    file = LakeFile(path.relative_to(table).as_posix(), found[0].first, found[-1].last, path.stat().st_size)
    if footer.num_rows != file.rows:
        raise Corrupt(f"{path} has {footer.num_rows:,} rows for the positions {file.first} to {file.last}")
    return file


def groups(path: Path, footer: Any) -> list[Group]:
    """The row groups that hold anything, which follow each other without a hole."""
    found = [_group(path, footer, number) for number in range(footer.num_row_groups)]
    held = [group for group in found if group is not None]
    for before, group in pairwise(held):
        if group.first != before.last + 1:
            raise Corrupt(f"{path} goes from {before.last} to {group.first}")
    return held


def merge(table: Path, files: Sequence[LakeFile], path: Path) -> LakeFile:
    """One file of what others hold, in constant memory."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with pq.ParquetWriter(path, arrow_schema(), compression="zstd") as writer:
        for part in _row_groups(table, files):
            writer.write_table(part, row_group_size=GROUP_ROWS)
    return file_of(table, path, pq.read_metadata(path))


def _row_groups(table: Path, files: Sequence[LakeFile]) -> Iterable[pa.Table]:
    """What files hold, gathered into row groups of a good size."""
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


def _group(path: Path, footer: Any, number: int) -> Group | None:
    group = footer.row_group(number)
    if not group.num_rows:
        return None
    statistics = group.column(footer.schema.names.index(POSITION)).statistics
    if statistics is None or not statistics.has_min_max or statistics.max - statistics.min + 1 != group.num_rows:
        raise Corrupt(f"row group {number} of {path} is not a closed range of positions")
    return Group(number, GlobalSeq(statistics.min), GlobalSeq(statistics.max))

"""A cache of the row groups of the lake's files, bounded in open files and bytes."""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tape.core.errors import Corrupt
from tape.core.event import Columns, Entry
from tape.lake.log import LakeFile
from tape.lake.parquet_files import POSITION, RowGroup, row_groups

OPEN_FILES: Final = 64
BYTES: Final = 64 << 20


class OpenFile(NamedTuple):
    """An open Parquet file and its row groups."""

    file: Any
    groups: list[RowGroup]


class RowGroupCache:
    """Opens files and reads row groups on demand, and drops the least recently used. Not thread-safe."""

    def __init__(self, table: Path) -> None:
        self._table = table
        self._open: OrderedDict[str, OpenFile] = OrderedDict()
        self._rows: OrderedDict[RowGroup, pa.Table] = OrderedDict()
        self._size = 0

    def row_groups(self, files: Sequence[LakeFile], after: int) -> Iterator[RowGroup]:
        """The row groups with entries after a position, in order; FileNotFoundError if a file is gone."""
        place = bisect_right(files, after, key=lambda file: file.last)
        for file in files[place:]:
            for group in self._opened(file.path).groups:
                if group.last > after:
                    yield group

    def rows(self, group: RowGroup) -> pa.Table:
        """All columns of a row group, ordered by position."""
        if group in self._rows:
            self._rows.move_to_end(group)
            return self._rows[group]
        rows = self._read(group, Columns._fields)
        _check_order(group, rows.column(POSITION))
        self._rows[group] = rows
        self._size += rows.nbytes
        while self._size > BYTES and len(self._rows) > 1:
            _, oldest = self._rows.popitem(last=False)
            self._size -= oldest.nbytes
        return rows

    def column(self, group: RowGroup, name: str) -> pa.ChunkedArray:
        rows = self._rows.get(group)
        return self._read(group, (name,)).column(name) if rows is None else rows.column(name)

    def may_contain(self, group: RowGroup, name: str, values: Collection[str]) -> bool:
        """False if the footer's statistics rule out that a column has one of the values."""
        footer = self._opened(group.path).file.metadata
        known = footer.row_group(group.number).column(footer.schema.names.index(name)).statistics
        if known is None or not known.has_min_max:
            return True
        return any(known.min <= value <= known.max for value in values)

    def clear(self) -> None:
        """Closes every file, because files may have been replaced by others."""
        for opened in self._open.values():
            opened.file.close()
        self._open.clear()
        self._rows.clear()
        self._size = 0

    def _opened(self, path: str) -> OpenFile:
        if path in self._open:
            self._open.move_to_end(path)
            return self._open[path]
        with parquet_errors(self._table / path):
            file = pq.ParquetFile(self._table / path)
            self._open[path] = OpenFile(file, row_groups(path, file.metadata))
        if len(self._open) > OPEN_FILES:
            _, oldest = self._open.popitem(last=False)
            oldest.file.close()
        return self._open[path]

    def _read(self, group: RowGroup, names: Sequence[str]) -> pa.Table:
        file = self._opened(group.path).file
        with parquet_errors(self._table / group.path):
            return file.read_row_group(group.number, columns=list(names)).select(list(names))


def entries_of(rows: pa.Table) -> list[Entry]:
    """Turns rows into entries."""
    columns = [column.to_pylist() for column in rows.columns]
    return [tuple.__new__(Entry, row) for row in zip(*columns, strict=True)]


@contextmanager
def parquet_errors(path: Path) -> Iterator[None]:
    """Translates what pyarrow raises for a damaged file; the caller handles a missing one."""
    try:
        yield
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError, KeyError) as error:
        raise Corrupt(f"{path} cannot be read: {str(error).partition(chr(10))[0]}") from error


def _check_order(group: RowGroup, positions: pa.ChunkedArray) -> None:
    first, last = group.first, group.last
    expected = pa.array(range(first, last + 1), pa.int64())
    if pc.equal(positions.combine_chunks(), expected).true_count != last - first + 1:
        raise Corrupt(f"row group {group.number} of {group.path} is not {first} to {last} in order")

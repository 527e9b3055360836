"""Row groups of the lake's files, opened when they are asked for and kept while there is room."""

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
from tape.lake.parquet_files import POSITION, Group, groups

OPEN_FILES: Final = 64
BYTES: Final = 64 << 20


class OpenFile(NamedTuple):
    """A file that is open, and its row groups."""

    file: Any
    groups: list[Group]


class Stretch(NamedTuple):
    """A row group of a file: all entries of a closed range of positions."""

    path: str
    group: Group


class RowGroupCache:
    """What was read of a table's files. One thread at a time."""

    def __init__(self, table: Path) -> None:
        self._table = table
        self._open: OrderedDict[str, OpenFile] = OrderedDict()
        self._rows: OrderedDict[Stretch, pa.Table] = OrderedDict()
        self._size = 0

    def stretches(self, files: Sequence[LakeFile], after: int) -> Iterator[Stretch]:
        """Where the entries after a position are, in order; FileNotFoundError where a file has gone."""
        place = bisect_right(files, after, key=lambda file: file.last)
        for file in files[place:]:
            for group in self._opened(file.path).groups:
                if group.last > after:
                    yield Stretch(file.path, group)

    def rows(self, stretch: Stretch) -> pa.Table:
        """All columns of a stretch, row by row in the order of positions."""
        if stretch in self._rows:
            self._rows.move_to_end(stretch)
            return self._rows[stretch]
        rows = self._read(stretch, Columns._fields)
        _check_order(stretch, rows.column(POSITION))
        self._rows[stretch] = rows
        self._size += rows.nbytes
        while self._size > BYTES and len(self._rows) > 1:
            _, oldest = self._rows.popitem(last=False)
            self._size -= oldest.nbytes
        return rows

    def column(self, stretch: Stretch, name: str) -> pa.ChunkedArray:
        """One column of a stretch."""
        rows = self._rows.get(stretch)
        return self._read(stretch, (name,)).column(name) if rows is None else rows.column(name)

    def may_hold(self, stretch: Stretch, name: str, values: Collection[str]) -> bool:
        """Whether the footer leaves it open that one of the values is in a column."""
        footer = self._opened(stretch.path).file.metadata
        known = footer.row_group(stretch.group.number).column(footer.schema.names.index(name)).statistics
        if known is None or not known.has_min_max:
            return True
        return any(known.min <= value <= known.max for value in values)

    def forget(self) -> None:
        """Closes everything: files may have been replaced by others."""
        for opened in self._open.values():
            opened.file.close()
        self._open.clear()
        self._rows.clear()
        self._size = 0

    def _opened(self, path: str) -> OpenFile:
        if path in self._open:
            self._open.move_to_end(path)
            return self._open[path]
        whole = self._table / path
        with parquet_errors(whole):
            file = pq.ParquetFile(whole)
            self._open[path] = OpenFile(file, groups(whole, file.metadata))
        if len(self._open) > OPEN_FILES:
            _, oldest = self._open.popitem(last=False)
            oldest.file.close()
        return self._open[path]

    def _read(self, stretch: Stretch, names: Sequence[str]) -> pa.Table:
        file = self._opened(stretch.path).file
        with parquet_errors(self._table / stretch.path):
            return file.read_row_group(stretch.group.number, columns=list(names)).select(list(names))


def entries_of(rows: pa.Table) -> list[Entry]:
    """Rows as the entries they were."""
    columns = [column.to_pylist() for column in rows.columns]
    return [tuple.__new__(Entry, row) for row in zip(*columns, strict=True)]


@contextmanager
def parquet_errors(path: Path) -> Iterator[None]:
    """What pyarrow raises of a damaged file, as ours; that one is gone is for the caller to judge."""
    try:
        yield
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError, KeyError) as error:
        raise Corrupt(f"{path} cannot be read: {str(error).partition(chr(10))[0]}") from error


def _check_order(stretch: Stretch, positions: pa.ChunkedArray) -> None:
    first, last, number = stretch.group.first, stretch.group.last, stretch.group.number
    if (
        not pc.equal(positions.combine_chunks(), pa.array(range(first, last + 1), pa.int64())).true_count
        == last - first + 1
    ):
        raise Corrupt(f"row group {number} of {stretch.path} is not {first} to {last} in order")

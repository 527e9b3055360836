"""Ranges of a SQLite journal: rows of sqlite3 as Arrow columns."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tape.core.errors import Corrupt, NotFound, TapeError, Unavailable
from tape.core.ids import GlobalSeq
from tape.core.ports import Bounds
from tape.store.ranges import BATCH_BYTES, Extent, Ranges, RangeSelection, arrow_schema, sql_of
from tape.store.sqlite.location import BUSY_S, Location

if TYPE_CHECKING:
    import pyarrow as pa

FIRST_ROWS: Final = 256
MOST_ROWS: Final = 1_000  # rows that fit into the processor's cache: 20,000 at once took 1.7 times as long


class SqliteRanges:
    """A connection that only reads."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._sql = sql_of("sqlite")

    def bounds(self) -> Bounds:
        floor, head = self._connection.execute(self._sql.bounds).fetchone()
        return Bounds(GlobalSeq(floor), GlobalSeq(head))

    def extent(self) -> Extent:
        return Extent.of(self._connection.execute(self._sql.extent).fetchall())

    def count(self, after: int, through: int) -> int:
        (rows,) = self._connection.execute(self._sql.count_between, {"after": after, "through": through}).fetchone()
        return int(rows)

    def read(
        self, after: int, through: int, columns: Sequence[str], selection: RangeSelection
    ) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        if selection.is_nothing:
            return
        schema, rows = arrow_schema(columns), FIRST_ROWS
        statement = self._sql.selecting(columns, selection)
        with closing(self._connection.execute(statement, _parameters(after, through, selection))) as cursor:
            while found := cursor.fetchmany(rows):
                arrays = map(pa.array, zip(*found, strict=True), schema.types)
                batch = pa.RecordBatch.from_arrays(list(arrays), schema=schema)
                yield batch
                rows = max(1, min(MOST_ROWS, 4 * rows, rows * BATCH_BYTES // max(1, batch.nbytes)))


@contextmanager
def open_sqlite(url: str) -> Iterator[Ranges]:
    path = Location.parse(url, unsafe_durability=True).path  # reading loses nothing
    if path is None or not path.exists():
        raise NotFound(f"there is no journal at {str(path)!r}")
    try:
        with closing(_connected(path)) as connection:
            yield SqliteRanges(connection)
    except sqlite3.Error as error:
        raise _translated(error, path) from error


def _connected(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.as_uri()}?mode=ro", BUSY_S, isolation_level=None, uri=True)


def _parameters(after: int, through: int, selection: RangeSelection) -> dict[str, object]:
    low, high = selection.span or ("", "")
    wanted = {"run_ids": selection.run_ids, "kinds": selection.kinds, "subjects": selection.subjects}
    listed = {name: json.dumps(sorted(values or ())) for name, values in wanted.items()}
    return {"after": after, "through": through, "low": low, "high": high, **listed}


def _translated(error: sqlite3.Error, path: Path) -> TapeError:
    if "no such table" in str(error):
        return NotFound(f"there is no journal in {str(path)!r}")
    if "decode to UTF-8" in str(error) or "malformed" in str(error):
        return Corrupt(f"the journal in {str(path)!r} cannot be read ({error})")
    return Unavailable(f"SQLite did not answer ({error})")

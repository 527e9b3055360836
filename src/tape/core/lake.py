"""The status of a lake, its tables, and the port that queries it."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from tape.core.ids import GlobalSeq
from tape.core.ports import Bounds


class LakeStatus(NamedTuple):
    """Which positions are in the lake (cold), in the journal (warm) and in memory (hot).

    `lag_ms` is the age of the oldest entry that is not in the lake.
    """

    cold: Bounds
    warm: Bounds
    hot: Bounds
    lag: int
    lag_ms: int
    files: int
    bytes: int
    version: int
    committed_at_ms: int | None


class LakeTable(NamedTuple):
    """A table derived from the lake: its last position and its number of rows."""

    name: str
    through: GlobalSeq
    rows: int


class LakeRows(NamedTuple):
    """Rows of JSON values; `is_whole` says whether these are all rows."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    is_whole: bool


class LakeQueries(Protocol):
    """Reads a lake within a deadline; raises NotFound where there is no lake.

    A query changes nothing, reads nothing but the lake, and is bounded in rows, time and memory.
    """

    async def status(self) -> LakeStatus: ...
    async def tables(self) -> Sequence[LakeTable]: ...
    async def table(self, name: str, most: int) -> tuple[LakeTable, LakeRows]: ...
    async def query(self, sql: str, most: int) -> LakeRows: ...

"""What a lake says of itself, and what it answers."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from tape.core.ids import GlobalSeq
from tape.core.ports import Bounds


class LakeStatus(NamedTuple):
    """Positions by temperature; the lag is of the oldest entry that is not in the lake."""

    cold: Bounds
    warm: Bounds
    hot: Bounds
    lag: int
    lag_ms: int
    files: int
    size: int
    version: int
    committed_at_ms: int | None


class LakeTable(NamedTuple):
    """A table that was made from the lake, and as of which position."""

    name: str
    through: GlobalSeq
    rows: int


class LakeRows(NamedTuple):
    """Rows of JSON values, and whether they are all there are."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    is_whole: bool


class LakeQueries(Protocol):
    """Answers about a lake without keeping the caller waiting for ever; NotFound where there is none.

    A question changes nothing, sees nothing but the lake, and is bounded in rows, time and memory.
    """

    async def status(self) -> LakeStatus: ...
    async def tables(self) -> Sequence[LakeTable]: ...
    async def table(self, name: str, most: int) -> tuple[LakeTable, LakeRows]: ...
    async def query(self, question: str, most: int) -> LakeRows: ...

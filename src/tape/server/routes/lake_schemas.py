"""The schemas of requests and responses about the lake."""

from typing import Annotated, Any

from msgspec import Meta, Struct

from tape.core.lake import LakeRows, LakeStatus, LakeTable
from tape.core.ports import Bounds
from tape.server.routes.schemas import Count

MOST_ROWS = 1_000
Limit = Annotated[int, Meta(ge=1, le=MOST_ROWS)]
Cell = Annotated[Any, Meta(description="a value of JSON; a value that JSON cannot represent is text")]


class PositionBounds(Struct, frozen=True, kw_only=True):
    """The first and the last position; there are none if the floor is above the head."""

    floor: Count
    head: Count

    @classmethod
    def of(cls, bounds: Bounds) -> "PositionBounds":
        return cls(floor=bounds.floor, head=bounds.head)


class LakeStatusDetail(Struct, frozen=True, kw_only=True):
    """Which positions are cold, warm and hot, and how far the lake is behind the journal."""

    cold: PositionBounds
    warm: PositionBounds
    hot: PositionBounds
    lag: Count
    lag_ms: Count
    files: Count
    bytes: Count
    version: int
    committed_at_ms: int | None

    @classmethod
    def of(cls, status: LakeStatus) -> "LakeStatusDetail":
        bounds = {name: PositionBounds.of(getattr(status, name)) for name in ("cold", "warm", "hot")}
        return cls(**{**status._asdict(), **bounds})


class LakeTableSummary(Struct, frozen=True, kw_only=True):
    """A table, its last position, and its number of rows."""

    name: str
    through: Count
    rows: Count

    @classmethod
    def of(cls, table: LakeTable) -> "LakeTableSummary":
        return cls(**table._asdict())


class LakeTables(Struct, frozen=True, kw_only=True):
    """The tables that were written."""

    tables: list[LakeTableSummary]


class LakeTableRows(Struct, frozen=True, kw_only=True):
    """A table with its first rows; `is_whole` says whether these are all."""

    name: str
    through: Count
    n_rows: Count
    columns: list[str]
    rows: list[list[Cell]]
    is_whole: bool

    @classmethod
    def of(cls, table: LakeTable, result: LakeRows) -> "LakeTableRows":
        return cls(name=table.name, through=table.through, n_rows=table.rows, **_rows(result))


class LakeQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One query of the view `journal` and the tables, in DuckDB's SQL."""

    sql: Annotated[str, Meta(min_length=1, max_length=20_000)]
    limit: Limit = MOST_ROWS


class LakeQueryResult(Struct, frozen=True, kw_only=True):
    """The first rows of a result; `is_whole` says whether these are all."""

    columns: list[str]
    rows: list[list[Cell]]
    is_whole: bool

    @classmethod
    def of(cls, result: LakeRows) -> "LakeQueryResult":
        return cls(**_rows(result))


def _rows(result: LakeRows) -> dict[str, Any]:
    return {"columns": list(result.columns), "rows": [list(row) for row in result.rows], "is_whole": result.is_whole}

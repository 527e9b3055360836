"""Reads the cells of ledgers; only a request changes them."""

import json
from collections.abc import Mapping, Sequence
from itertools import accumulate, product
from typing import Final, NamedTuple

from tape.core.page import ANSWER_BYTES
from tape.core.ports import DUE_START, CellQuery, CellSnapshot, DueCursor, WorkFilter
from tape.core.sequence import Cell, CellId
from tape.store.clock import now_ms
from tape.store.connection import Connection, Query, Row
from tape.store.statements import statements

LAST: Final = "\x7f"  # after every place


class _Sql(NamedTuple):
    clock: str
    read: str
    due: str
    due_served: str
    under: str
    listed: str


class Cells:
    """The rows of all ledgers."""

    def __init__(self, connection: Connection, dialect: str) -> None:
        self._connection = connection
        self._sql = _Sql(**statements(dialect, "cells.sql"))

    async def read(self, ids: Sequence[CellId]) -> Mapping[CellId, Cell]:
        (rows,) = await self._connection.snapshot(Query(self._sql.read, {"ids": json.dumps(ids)}))
        return _cells(rows)

    async def snapshot(self, ids: Sequence[CellId]) -> CellSnapshot:
        clock = Query(self._sql.clock, {"now_ms": now_ms()})  # only SQLite uses it; a server has its own clock
        times, rows = await self._connection.snapshot(clock, Query(self._sql.read, {"ids": json.dumps(ids)}))
        ((now,),) = times
        return CellSnapshot(now, _cells(rows))

    async def due(
        self,
        ledger: str,
        status: str,
        through_ms: int,
        limit: int,
        after: DueCursor = DUE_START,
        served: WorkFilter | None = None,
    ) -> Mapping[CellId, Cell]:
        asked = {"ledger": ledger, "status": status, "through": through_ms, "limit": limit}
        asked |= {"after_due": after.due_at_ms, "after_key": after.key}
        if served is None:
            query = Query(self._sql.due, asked)
        else:
            query = Query(self._sql.due_served, asked | {"served": json.dumps([*product(*served)])})
        (rows,) = await self._connection.snapshot(query)
        return _cells(rows)

    async def under(self, ledger: str, parent: str, limit: int, after: str = "") -> Mapping[CellId, Cell]:
        low, high = _range(parent)
        asked = {"ledger": ledger, "low": max(low, after), "high": high, "limit": limit}
        (rows,) = await self._connection.snapshot(Query(self._sql.under, asked))
        return _cells(rows)

    async def listed(
        self, query: CellQuery, limit: int, after: str = "", max_bytes: int = ANSWER_BYTES
    ) -> Mapping[CellId, Cell]:
        """Reads a page of each status along the index of places, and merges them."""
        low, high = _range(query.parent) if query.parent else ("", LAST)
        asked = {"ledger": query.ledger, "low": max(low, after), "high": high, "kind": query.kind, "limit": limit}
        asked["max_bytes"] = max_bytes
        pages = [Query(self._sql.listed, {**asked, "status": status}) for status in query.statuses]
        rows = [row for page in await self._connection.snapshot(*pages) for row in page]
        found = sorted(_cells(rows).items(), key=lambda item: item[1].place or "")
        sizes = accumulate((cell.size for _, cell in found), initial=0)
        return dict(item for item, before in zip(found[:limit], sizes, strict=False) if before <= max_bytes)


def _range(parent: str) -> tuple[str, str]:
    """Between these two are the texts below a parent."""
    return f"{parent}/", f"{parent}0"  # 0 comes right after /


def _cells(rows: Sequence[Row]) -> Mapping[CellId, Cell]:
    return {
        CellId(ledger, key): Cell(
            version=version, status=status, due_at_ms=due, state_json=state, app=app, kind=kind, place=place
        )
        for ledger, key, version, status, due, state, app, kind, place in rows
    }

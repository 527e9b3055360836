"""Reads the cells of ledgers; only a request changes them."""

import json
from collections.abc import Mapping, Sequence
from itertools import product
from typing import NamedTuple

from tape.core.ports import DUE_START, CellSnapshot, DueCursor, WorkFilter
from tape.core.sequence import Cell, CellId
from tape.store.clock import now_ms
from tape.store.connection import Connection, Query, Row
from tape.store.statements import statements


class _Sql(NamedTuple):
    clock: str
    read: str
    due: str
    due_served: str
    under: str


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
        first, beyond = f"{parent}/", f"{parent}0"  # 0 comes right after /
        asked = {"ledger": ledger, "low": max(first, after), "high": beyond, "limit": limit}
        (rows,) = await self._connection.snapshot(Query(self._sql.under, asked))
        return _cells(rows)


def _cells(rows: Sequence[Row]) -> Mapping[CellId, Cell]:
    return {
        CellId(ledger, key): Cell(version=version, status=status, due_at_ms=due, state_json=state, app=app, kind=kind)
        for ledger, key, version, status, due, state, app, kind in rows
    }

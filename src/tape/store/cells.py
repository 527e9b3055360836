"""Reading the cells of ledgers; only a request changes them."""

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tape.core.sequence import Cell, CellId
from tape.store.connection import Connection, Query
from tape.store.statements import statements


class _Sql(NamedTuple):
    read: str


class Cells:
    """The rows of all ledgers."""

    def __init__(self, connection: Connection, dialect: str) -> None:
        self._connection = connection
        self._sql = _Sql(**statements(dialect, "cells.sql"))

    async def read(self, ids: Sequence[CellId]) -> Mapping[CellId, Cell]:
        (rows,) = await self._connection.snapshot(Query(self._sql.read, {"ids": json.dumps(ids)}))
        return {
            CellId(ledger, key): Cell(version=version, status=status, due_at_ms=due, state_json=state)
            for ledger, key, version, status, due, state in rows
        }

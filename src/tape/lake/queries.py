"""The lake of a server that never loads Spark: its status, its tables, and SQL queries."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import anyio
from anyio import CapacityLimiter, to_thread

from tape.core.errors import LimitReached, NotFound, UsageError
from tape.core.lake import LakeRows, LakeStatus, LakeTable
from tape.core.ports import Journal
from tape.lake.lazy_reader import TABLE, check_installed
from tape.work.child_process import run_child

if TYPE_CHECKING:
    from tape.lake.log import DeltaLog

QUERY_S: Final = 10.0
AT_ONCE: Final = 2

T = TypeVar("T")


class Queries:
    """Answers about the lake in a folder; NotFound while there is none."""

    def __init__(self, journal: Journal, lake: Path) -> None:
        self._journal = journal
        self._lake = lake
        self._limiter = CapacityLimiter(AT_ONCE)

    async def status(self) -> LakeStatus:
        log = self._log()
        from tape.lake.same_journal import check_same_journal
        from tape.lake.status import status_of

        await check_same_journal(self._journal, log, await to_thread.run_sync(log.snapshot))
        return await status_of(self._journal, log)

    async def tables(self) -> Sequence[LakeTable]:
        return [LakeTable(table.name, table.through, table.rows) for table in await self._with_log(_tables)]

    async def table(self, name: str, most: int) -> tuple[LakeTable, LakeRows]:
        """A table's first rows; NotFound if the table was never written."""
        return await self._with_log(lambda log: _table(log.table.parent, name, most))

    async def query(self, sql: str, most: int) -> LakeRows:
        """Runs a query with DuckDB, in a process of its own."""
        order = {**await self._with_log(_order), "sql": sql, "most": most}
        async with self._limiter:
            result = await _run_query(order)
        if "refused" in result:
            raise UsageError(result["refused"])
        return LakeRows(**result)

    async def _with_log(self, read: Callable[[DeltaLog], T]) -> T:
        return await to_thread.run_sync(read, self._log())

    def _log(self) -> DeltaLog:
        if not (self._lake / TABLE).is_dir():
            raise NotFound("there is no lake yet; tape lake sync makes one")
        check_installed()
        from tape.lake.log import DeltaLog

        log = DeltaLog(self._lake / TABLE)
        if not log.exists:
            raise NotFound("the lake is still being made; come back in a moment")
        return log


async def _run_query(order: dict[str, Any]) -> dict[str, Any]:
    """Kills the process at the deadline; one that exceeded its limits writes nothing."""
    with anyio.move_on_after(QUERY_S):
        command = [sys.executable, "-P", "-m", "tape.lake.query_process"]
        done = await run_child(command, json.dumps(order).encode())
        if done.returncode != 0:
            raise LimitReached("the query took more memory or time than a query may take; ask for less")
        result: dict[str, Any] = json.loads(done.stdout)
        return result
    raise LimitReached(f"the query was not answered within {QUERY_S:g} s; ask for less")


def _order(log: DeltaLog) -> dict[str, Any]:
    views = {table.name: [str(part) for part in table.files] for table in _tables(log)}
    return {"folder": str(log.table), "files": [file.path for file in log.snapshot().files], "views": views}


def _tables(log: DeltaLog) -> Sequence[Any]:
    from tape.lake.derived_tables import existing_tables

    return existing_tables(log.table.parent)


def _table(lake: Path, name: str, most: int) -> tuple[LakeTable, LakeRows]:
    import pyarrow.parquet as pq

    from tape.lake.derived_tables import NAMES, find_table
    from tape.lake.query_process import bounded_rows

    table = find_table(lake, name) if name in NAMES else None
    if table is None:
        raise NotFound(f"there is no table {name!r} in the lake; tape lake tables makes {', '.join(NAMES)}")
    rows: list[list[Any]] = []
    names: Sequence[str] = ()
    for file in table.files:
        read = pq.read_table(file)
        names = read.column_names
        rows += [list(row.values()) for row in read.slice(0, max(most - len(rows), 0)).to_pylist()]
    bounded = bounded_rows(rows)
    return LakeTable(name, table.through, table.rows), LakeRows(names, bounded, len(bounded) == table.rows)

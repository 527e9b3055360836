"""The directory of runs."""

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tape.core.errors import Conflict, RunNotFound, RunOpen
from tape.core.ids import RunId
from tape.core.ports import Transaction
from tape.core.run import Head, LiveRun, RunMeta
from tape.store.clock import now_ms
from tape.store.connection import Connection, Query
from tape.store.retention import Retention
from tape.store.statements import statements


class _Sql(NamedTuple):
    head: str
    heads: str
    put_run: str
    open_head: str
    close_head: str
    close_run: str
    reap_run: str
    live: str
    children: str


class Runs:
    """Which runs there are, and which of them are open."""

    def __init__(self, connection: Connection, dialect: str, bounded: Retention | None = None) -> None:
        self._connection = connection
        self._sql = _Sql(**statements(dialect, "runs.sql"))
        self._bounded = bounded  # a bounded store drops what is reaped, a durable one keeps it

    async def open(self, run_id: RunId, meta: RunMeta) -> Head:
        run = {"run_id": run_id, "label": meta.label, "started_at": meta.started_at, "now_ms": now_ms()}
        async with self._connection.transaction() as tx:
            await tx.lock()
            head = await self._head(tx, run_id)
            if head is not None and head.is_open:
                raise RunOpen(run_id)
            await tx.fetch(self._sql.put_run, run)
            await tx.fetch(self._sql.open_head, {"run_id": run_id})
            return await self._known(tx, run_id)

    async def close(self, run_id: RunId) -> Head:
        async with self._connection.transaction() as tx:
            await tx.lock()
            head = await self._known(tx, run_id)
            if not head.is_open:
                return head
            await tx.fetch(self._sql.close_head, {"run_id": run_id})
            await tx.fetch(self._sql.close_run, {"run_id": run_id, "now_ms": now_ms()})
            return await self._known(tx, run_id)

    async def reap(self, run_id: RunId) -> None:
        async with self._connection.transaction() as tx:
            await tx.lock()
            if (await self._known(tx, run_id)).is_open:
                raise RunOpen(run_id, "reap")
            ((children,),) = await tx.fetch(self._sql.children, {"run_id": run_id})
            if children:
                raise Conflict(f"run {run_id!r} has {children} living forks; reap them first")
            await tx.fetch(self._sql.reap_run, {"run_id": run_id, "now_ms": now_ms()})
            if self._bounded is not None:
                await self._bounded.trim_run_in(tx, run_id, keep=0)

    async def live(self) -> Sequence[LiveRun]:
        (rows,) = await self._connection.snapshot(Query(self._sql.live))
        return [LiveRun(run_id=row[0], label=row[1], started_at=row[2], n_events=row[3]) for row in rows]

    async def heads(self, run_ids: Sequence[RunId]) -> Mapping[RunId, Head]:
        (rows,) = await self._connection.snapshot(Query(self._sql.heads, {"run_ids": json.dumps(run_ids)}))
        return {row[0]: Head(*row[1:]) for row in rows}

    async def _head(self, tx: Transaction, run_id: RunId) -> Head | None:
        rows = await tx.fetch(self._sql.head, {"run_id": run_id})
        return Head(*rows[0]) if rows else None

    async def _known(self, tx: Transaction, run_id: RunId) -> Head:
        head = await self._head(tx, run_id)
        if head is None:
            raise RunNotFound(run_id)
        return head

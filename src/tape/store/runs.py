"""The directory of runs."""

import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import NamedTuple

from tape.core.errors import Conflict, RunNotFound, RunOpen
from tape.core.ids import RunId
from tape.core.ports import Transaction
from tape.core.run import Head, RunMeta, RunRecord
from tape.core.run_query import MAX_PAGE, RunPosition, RunQuery
from tape.store.clock import now_ms
from tape.store.connection import Connection, Query, Row
from tape.store.heads import head_of
from tape.store.retention import Retention
from tape.store.run_pages import RunPages
from tape.store.statements import statements


class _Sql(NamedTuple):
    head: str
    heads: str
    lock_run: str
    put_run: str
    open_head: str
    close_heads: str
    close_runs: str
    reap_run: str
    children: str
    lock_runs: str
    renew: str
    silent: str
    lock_silent: str
    found: str


class Runs:
    """All runs, and which of them are open.

    A change locks the row of a run first and the journal last, as every transaction does.
    """

    def __init__(self, connection: Connection, dialect: str, bounded: Retention | None = None) -> None:
        self._connection = connection
        self._sql = _Sql(**statements(dialect, "runs.sql"))
        self._pages = RunPages(**statements(dialect, "run_pages.sql"))
        self._bounded = bounded  # a bounded store drops the entries of a reaped run, a durable one keeps them

    async def open(self, run_id: RunId, meta: RunMeta, producer: str | None = None) -> Head:
        opened = None
        while opened is None:  # a run that was created meanwhile is found the next time
            async with self._connection.transaction() as tx:
                opened = await self._opened(tx, run_id, meta, producer)
        return opened

    async def _opened(self, tx: Transaction, run_id: RunId, meta: RunMeta, producer: str | None) -> Head | None:
        is_known = await self._lock(tx, run_id)
        head = await self._head(tx, run_id)
        if head is not None and head.is_open:
            raise RunOpen(run_id)
        if head is not None and not is_known:
            return None
        await tx.fetch(self._sql.put_run, _row(run_id, meta, producer))
        await tx.fetch(self._sql.open_head, {"run_id": run_id})
        return await self._known(tx, run_id)

    async def close(self, run_id: RunId) -> Head:
        async with self._connection.transaction() as tx:
            await self._lock_known(tx, run_id)
            head = await self._known(tx, run_id)
            return (await self._close(tx, [run_id]))[run_id] if head.is_open else head

    async def reap(self, run_id: RunId) -> None:
        async with self._connection.transaction() as tx:
            await self._lock_known(tx, run_id)
            if (await self._known(tx, run_id)).is_open:
                raise RunOpen(run_id, "reap")
            ((children,),) = await tx.fetch(self._sql.children, {"run_id": run_id})
            if children:
                raise Conflict(f"run {run_id!r} has {children} living forks; reap them first")
            await tx.fetch(self._sql.reap_run, {"run_id": run_id, "now_ms": now_ms()})
            if self._bounded is not None:
                await self._bounded.trim_run_in(tx, run_id, keep=0)

    async def renew(self, producer: str, run_ids: Sequence[RunId], *, adopts: bool = False) -> Sequence[RunId]:
        if not run_ids:
            return ()
        runs = {"run_ids": json.dumps(run_ids)}
        async with self._connection.transaction() as tx:
            await tx.fetch(self._sql.lock_runs, runs)
            rows = await tx.fetch(self._sql.renew, {**runs, "producer": producer, "adopts": adopts, "now_ms": now_ms()})
        held = {row[0] for row in rows}
        return [run_id for run_id in run_ids if run_id in held]

    async def close_silent(self, silence: timedelta) -> Mapping[RunId, Head]:
        limit = {"silence_ms": silence // timedelta(milliseconds=1)}
        (rows,) = await self._connection.snapshot(Query(self._sql.silent, {**limit, "now_ms": now_ms()}))
        if not rows:
            return {}
        async with self._connection.transaction() as tx:
            rows = await tx.fetch(self._sql.lock_silent, {**limit, "now_ms": now_ms()})
            if not rows:
                return {}
            await tx.lock()
            return await self._close(tx, [row[0] for row in rows])

    async def find(self, run_id: RunId) -> RunRecord | None:
        (rows,) = await self._connection.snapshot(Query(self._sql.found, {"run_id": run_id, "now_ms": now_ms()}))
        return _record(rows[0]) if rows else None

    async def listed(
        self, query: RunQuery, limit: int = MAX_PAGE, after: RunPosition | None = None
    ) -> Sequence[RunRecord]:
        found: list[RunRecord] = []
        first = 0 if after is None else after.section
        for section in range(first, len(query.sections)):
            begin = after if after is not None and section == first else query.start(section)
            (rows,) = await self._connection.snapshot(self._pages.query(query, begin, limit - len(found)))
            found += map(_record, rows)
            if len(found) >= limit:
                break
        return found

    async def heads(self, run_ids: Sequence[RunId]) -> Mapping[RunId, Head]:
        (rows,) = await self._connection.snapshot(Query(self._sql.heads, {"run_ids": json.dumps(run_ids)}))
        return {row[0]: head_of(row[1:]) for row in rows}

    async def _lock(self, tx: Transaction, run_id: RunId) -> bool:
        """Locks the row of a run, if it exists, and the journal."""
        rows = await tx.fetch(self._sql.lock_run, {"run_id": run_id})
        await tx.lock()
        return bool(rows)

    async def _lock_known(self, tx: Transaction, run_id: RunId) -> None:
        if not await self._lock(tx, run_id):
            raise RunNotFound(run_id)

    async def _close(self, tx: Transaction, run_ids: Sequence[RunId]) -> Mapping[RunId, Head]:
        """Closes open runs at their last seq; the caller has locked their rows and the journal."""
        runs = {"run_ids": json.dumps(run_ids), "now_ms": now_ms()}
        await tx.fetch(self._sql.close_heads, runs)
        await tx.fetch(self._sql.close_runs, runs)
        return {row[0]: head_of(row[1:]) for row in await tx.fetch(self._sql.heads, runs)}

    async def _head(self, tx: Transaction, run_id: RunId) -> Head | None:
        rows = await tx.fetch(self._sql.head, {"run_id": run_id})
        return head_of(rows[0]) if rows else None

    async def _known(self, tx: Transaction, run_id: RunId) -> Head:
        head = await self._head(tx, run_id)
        if head is None:
            raise RunNotFound(run_id)
        return head


def _row(run_id: RunId, meta: RunMeta, producer: str | None) -> dict[str, object]:
    return {
        "run_id": run_id,
        "label": meta.label,
        "started_at": meta.started_at,
        "app": meta.app,
        "user": meta.user,
        "session": meta.session,
        "producer": producer,
        "now_ms": now_ms(),
    }


def _record(row: Row) -> RunRecord:
    """A run from its row and its head; whether it is closed or reaped, the head decides."""
    run_id, label, started_at, app, user, session, opened_at, closed_at, reaped_at, silent_ms, *place = row
    head = head_of(place)
    return RunRecord(
        run_id=run_id,
        meta=RunMeta(label=label, started_at=started_at, app=app, user=user, session=session),
        head=head,
        opened_at_ms=opened_at,
        closed_at_ms=None if head.is_open else closed_at,
        is_reaped=reaped_at is not None and not head.is_open,
        silent_ms=None if silent_ms is None else max(0, silent_ms),
    )

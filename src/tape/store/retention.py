"""Trims the journal without changing a position or a seq."""

from typing import Final, NamedTuple

from tape.core.errors import RunNotFound, UsageError
from tape.core.ids import GlobalSeq, RunId
from tape.core.ports import Bounds, Transaction
from tape.core.run import Head
from tape.store.connection import Connection, Query
from tape.store.heads import head_of
from tape.store.match_claims import MatchClaims
from tape.store.statements import statements

STEP: Final = 5_000  # positions trimmed in one transaction, so that appends do not wait long


class _Sql(NamedTuple):
    bounds: str
    raise_floor: str
    raise_run_floors: str
    delete_through: str
    run_head: str
    last_gone: str
    raise_run_floor: str
    delete_run_below: str
    delete_keys_before: str


class Retention:
    """Trims the journal, runs and keys."""

    def __init__(self, connection: Connection, dialect: str, claims: MatchClaims) -> None:
        self._connection = connection
        self._claims = claims
        self._sql = _Sql(**statements(dialect, "retention.sql"))

    async def trim(self, through: GlobalSeq) -> Bounds:
        bounds = await self._bounds()
        if through > bounds.head:
            raise UsageError(f"cannot trim through {through}: the head is {bounds.head}")
        for step in range(bounds.floor - 1, through, STEP):
            await self._trim_step(min(step + STEP, through))
        return await self._bounds()

    async def _trim_step(self, through: int) -> None:
        position = {"through": through}
        async with self._connection.transaction() as tx:
            await self._claims.materialize_all(tx)
            await tx.lock()
            await tx.fetch(self._sql.raise_floor, position)
            await tx.fetch(self._sql.raise_run_floors, position)
            await tx.fetch(self._sql.delete_through, position)

    async def trim_run(self, run_id: RunId, keep: int) -> Head:
        async with self._connection.transaction() as tx:
            await self._claims.materialize_all(tx)
            await tx.lock()
            return await self.trim_run_in(tx, run_id, keep)

    async def trim_run_in(self, tx: Transaction, run_id: RunId, keep: int) -> Head:
        """Trims a run inside a transaction that has the append lock."""
        head = await self._run_head(tx, run_id)
        run = {"run_id": run_id, "floor": max(head.floor, head.last_seq - keep + 1)}
        await tx.fetch(self._sql.raise_run_floor, run)
        ((gone,),) = await tx.fetch(self._sql.last_gone, run)
        if gone is not None:  # inherited entries belong to an ancestor and stay
            await tx.fetch(self._sql.raise_floor, {"through": gone})
            await tx.fetch(self._sql.delete_run_below, run)
        return await self._run_head(tx, run_id)

    async def forget_keys(self, before_ms: int) -> int:
        async with self._connection.transaction() as tx:
            return len(await tx.fetch(self._sql.delete_keys_before, {"before_ms": before_ms}))

    async def _bounds(self) -> Bounds:
        ((row,),) = await self._connection.snapshot(Query(self._sql.bounds))
        return Bounds(*row)

    async def _run_head(self, tx: Transaction, run_id: RunId) -> Head:
        rows = await tx.fetch(self._sql.run_head, {"run_id": run_id})
        if not rows:
            raise RunNotFound(run_id)
        return head_of(rows[0])

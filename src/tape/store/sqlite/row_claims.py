"""Claiming as tasks are matched on SQLite: each task is inserted as a claimed row."""

from collections.abc import Sequence

from tape.core.errors import StaleClaim
from tape.core.matched import MatchedPage
from tape.core.ports import Transaction
from tape.core.task import ClaimRequest, Match, Task, TaskClaim, TaskStatus, task_id
from tape.store.connection import Connection, Query, Row
from tape.store.match_claims import PageResult, claimable, claimed_task
from tape.store.statements import statements
from tape.store.task_rows import groups, pending_row, rows_json


class RowClaims:
    """A claimed task is a row like any other, so there is nothing to materialize."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._insert = statements("sqlite", "claims.sql")["insert_claimed"]

    async def record(self, page: MatchedPage, request: ClaimRequest) -> PageResult:
        return PageResult(is_done=False)

    async def insert(self, tx: Transaction, matches: Sequence[Match], now: int, request: ClaimRequest) -> list[Task]:
        """Claims the oldest matches; those beyond the free slots are inserted as pending."""
        asked = {
            "owner": request.owner,
            "lease_ms": request.lease_ms,
            "now": now,
            "reaction_ids": claimable(request, matches),
        }
        by_id = {task_id(match.reaction.reaction_id, match.entry.global_seq): match for match in matches}
        claimed: list[Task] = []
        for group in groups([pending_row(match, due_at_ms=now) for match in matches]):
            asked |= {"matches": rows_json(group), "most": request.limit - len(claimed)}
            rows = await tx.fetch(self._insert, asked)
            shards = {name: shard for name, shard, status in rows if status == TaskStatus.CLAIMED}
            claimed += [
                claimed_task(match, shards[name], now, request) for name, match in by_id.items() if name in shards
            ]
        return claimed

    async def finish(self, claims: Sequence[TaskClaim]) -> Sequence[StaleClaim | None] | None:
        return None

    async def read_due(self, *queries: Query) -> Sequence[Sequence[Row]]:
        return await self._connection.snapshot(*queries)

    async def materialize_owned(self, tx: Transaction, claims: Sequence[TaskClaim]) -> None:
        return

    async def materialize_all(self, tx: Transaction) -> None:
        return

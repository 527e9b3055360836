"""Claiming as tasks are matched on Postgres: one row for each page and reaction, materialized when it must be."""

import json
from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple

from tape.core.errors import StaleClaim
from tape.core.matched import MatchedPage, Recorded
from tape.core.ports import Transaction
from tape.core.task import ClaimRequest, Match, Task, TaskClaim, shard_hash, task_prefix
from tape.store.connection import Query, Row
from tape.store.match_claims import PageResult, claimable, claimed_task, stale_claim
from tape.store.postgres.connection import Database
from tape.store.postgres.first_attempts import first_attempts
from tape.store.statements import statements
from tape.store.task_rows import groups, pending_row, rows_json


class _Sql(NamedTuple):
    match_page: str
    claim_matches: str
    finish: str
    has_expired: str
    materialize_expired: str
    materialize_owned: str
    materialize_all: str


class PageClaims:
    """Claims a page of matches as one row for each reaction; the journal has everything else about them."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = _Sql(**statements("postgres", "claims.sql"))
        self._insert = statements("postgres", "tasks.sql")["insert"]

    async def record(self, page: MatchedPage, request: ClaimRequest) -> PageResult:
        """Not done if an entry of the page was trimmed: its task is then inserted from the page itself."""
        columns = _Columns(page.matches)
        cursor = {"seen": page.version, "epoch": page.epoch, "cursor": page.cursor}
        query = Query(self._sql.match_page, {**cursor, **columns.parameters(request)})
        ((version, now, counts, is_trimmed),) = await self._database.execute(query)
        if is_trimmed:
            return PageResult(is_done=False)
        if version is None:
            return PageResult(is_done=True)
        return PageResult(is_done=True, recorded=Recorded(version, columns.claimed(counts, now, request)))

    async def insert(self, tx: Transaction, matches: Sequence[Match], now: int, request: ClaimRequest) -> list[Task]:
        if not matches:
            return []
        columns = _Columns(matches)
        ((counts,),) = await tx.fetch(self._sql.claim_matches, {"now": now, **columns.parameters(request)})
        if counts is not None:
            return columns.claimed(counts, now, request)
        for group in groups([pending_row(match, due_at_ms=now) for match in matches]):
            await tx.fetch(self._insert, {"matches": rows_json(group), "now": now})
        return []

    async def finish(self, claims: Sequence[TaskClaim]) -> Sequence[StaleClaim | None] | None:
        columns = first_attempts(claims)
        if columns is None:
            return None
        ((refused,),) = await self._database.execute(Query(self._sql.finish, columns._asdict()))
        return [stale_claim(claim) if claim.task_id in (refused or ()) else None for claim in claims]

    async def read_due(self, *queries: Query) -> Sequence[Sequence[Row]]:
        *found, has_expired = await self._database.snapshot(*queries, Query(self._sql.has_expired))
        if not has_expired:
            return found
        await self._database.execute(Query(self._sql.materialize_expired))
        return await self._database.snapshot(*queries)

    async def materialize_owned(self, tx: Transaction, claims: Sequence[TaskClaim]) -> None:
        owners = json.dumps(sorted({claim.owner for claim in claims}))
        await tx.fetch(self._sql.materialize_owned, {"owners": owners})

    async def materialize_all(self, tx: Transaction) -> None:
        await tx.fetch(self._sql.materialize_all, {})


class _Columns:
    """The positions of plain matches, reaction by reaction."""

    def __init__(self, matches: Sequence[Match]) -> None:
        self._matches: dict[str, list[Match]] = {}
        for match in matches:
            self._matches.setdefault(match.reaction.reaction_id, []).append(match)
        self._hashes = {run_id: shard_hash(run_id) for run_id in {match.entry.run_id for match in matches}}

    def parameters(self, request: ClaimRequest) -> dict[str, Any]:
        entries = [match.entry for match in chain.from_iterable(self._matches.values())]
        positions = [entry.global_seq for entry in entries]
        hashes = [self._hashes[entry.run_id] for entry in entries] if len(self._hashes) > 1 else self._hashes.values()
        return {
            "lowest": min(positions),
            "matched_ids": list(self._matches),
            "prefixes": [task_prefix(reaction_id) for reaction_id in self._matches],
            "sizes": [len(matches) for matches in self._matches.values()],
            "positions": positions,
            "hashes": list(hashes),
            "reaction_ids": claimable(request, chain.from_iterable(self._matches.values())),
            "owner": request.owner,
            "most": request.limit,
            "lease_ms": request.lease_ms,
        }

    def claimed(self, counts: Sequence[int], now: int, request: ClaimRequest) -> list[Task]:
        """The tasks of the first matches of each reaction, as many as were claimed."""
        first = chain.from_iterable(
            matches[:count] for matches, count in zip(self._matches.values(), counts, strict=True)
        )
        return [
            claimed_task(match, self._hashes[match.entry.run_id] % match.reaction.num_shards, now, request)
            for match in first
        ]

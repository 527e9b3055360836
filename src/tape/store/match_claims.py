"""How a dialect claims tasks as they are matched, for the worker in the process of the matcher."""

import json
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from tape.core.errors import StaleClaim
from tape.core.matched import MatchedPage, Recorded
from tape.core.ports import Transaction
from tape.core.task import ClaimRequest, Match, Task, TaskClaim, TaskId, TaskStatus, task_prefix
from tape.store.connection import Query, Row


class PageResult(NamedTuple):
    """`is_done` is False when nothing was written and the page must be recorded in a transaction."""

    is_done: bool
    recorded: Recorded | None = None


class MatchClaims(Protocol):
    """Claims matches for a worker within its slots and the limits of their reactions.

    SQLite writes a claimed row for each task. Postgres writes one row for each page and reaction, and materializes it
    as rows of tasks before anything but success happens to them.
    """

    async def record(self, page: MatchedPage, request: ClaimRequest) -> PageResult:
        """Records a plain page in one statement, if the dialect can."""
        ...

    async def insert(self, tx: Transaction, matches: Sequence[Match], now: int, request: ClaimRequest) -> list[Task]:
        """Inserts matches inside the matcher's transaction; returns the tasks that were claimed."""
        ...

    async def finish(self, claims: Sequence[TaskClaim]) -> Sequence[StaleClaim | None] | None:
        """Settles successful attempts in one statement; None if these must be settled in a transaction."""
        ...

    async def read_due(self, *queries: Query) -> Sequence[Sequence[Row]]:
        """Runs the queries in one snapshot, in which every claim whose lease has ended is a row of tasks."""
        ...

    async def materialize_owned(self, tx: Transaction, claims: Sequence[TaskClaim]) -> None: ...
    async def materialize_all(self, tx: Transaction) -> None: ...


def stale_claim(claim: TaskClaim) -> StaleClaim:
    return StaleClaim(f"attempt {claim.attempt} of task {claim.task_id!r} is not {claim.owner!r}'s any more")


def claimable(request: ClaimRequest, matches: Iterable[Match]) -> str:
    """The reactions of some matches that a worker serves, as a JSON array."""
    return json.dumps(sorted({match.reaction.reaction_id for match in matches}.intersection(request.reaction_ids)))


def claimed_task(match: Match, shard: int, now: int, request: ClaimRequest) -> Task:
    """The task of a match that was claimed as it was matched."""
    reaction, entry, prev_value_json, _ = match
    until = now + request.lease_ms
    return Task(
        task_id=TaskId(f"{task_prefix(reaction.reaction_id)}.{entry.global_seq:015}"),
        reaction_id=reaction.reaction_id,
        shard=shard,
        source_run_id=entry.run_id,
        source_seq=entry.seq,
        source_global_seq=entry.global_seq,
        kind=entry.kind,
        type=entry.type,
        subject=entry.subject,
        schema_version=entry.schema_version,
        ts_ms=entry.ts_ms,
        payload_json=entry.payload_json or "",
        prev_value_json=prev_value_json,
        status=TaskStatus.CLAIMED,
        attempt=1,
        attempts=1,
        next_attempt_at_ms=until,
        lease_owner=request.owner,
        lease_expires_at_ms=until,
        last_error="",
        coalesced=0,
        created_at_ms=now,
        completed_at_ms=0,
        trace_id=entry.trace_id,
        span_id=entry.span_id,
    )

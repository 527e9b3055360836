"""Tasks: claimed with a lease, settled by the newest attempt, replayed."""

import json
import random
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final, NamedTuple

from tape.core import limits
from tape.core.claim import check_lease
from tape.core.errors import NotFound, StaleClaim, TooLarge
from tape.core.page import PagePosition
from tape.core.ports import Transaction
from tape.core.task import (
    LARGEST,
    Claimed,
    ClaimRequest,
    Done,
    Match,
    NextState,
    Outcome,
    Outcomes,
    RetrySettings,
    Settlement,
    Task,
    TaskClaim,
    TaskId,
    TaskStatus,
    settled,
)
from tape.store.clock import now_ms
from tape.store.connection import Connection, Query, Row
from tape.store.match_claims import MatchClaims, stale_claim
from tape.store.matched_tasks import MatchedTasks, stage
from tape.store.statements import statements

CANDIDATES: Final = 1_000
AT_ONCE: Final = 64

_MS: Final = timedelta(milliseconds=1)
_LAST: Final = 2**63 - 1


class _Sql(NamedTuple):
    waiting: str
    exhausted: str
    expire: str
    lock_limits: str
    leases: str
    claim: str
    smallest: str
    move_limits: str
    extend: str
    finish: str
    lock_claims: str
    put_settled: str
    found: str
    made_of: str
    lock_match_cursor: str
    is_removed: str
    listed: str
    dead: str
    replay: str
    forget: str
    outcomes: str


class _Limit(NamedTuple):
    reaction_id: str
    next_start_us: int
    max_concurrency: int
    rate_per_s: int


class _Left(NamedTuple):
    """The tasks and bytes that a claim may still take."""

    tasks: int
    max_bytes: int

    def without(self, found: Sequence[Task]) -> "_Left":
        return _Left(self.tasks - len(found), self.max_bytes - sum(task.size for task in found))


class Tasks:
    """All tasks of the store."""

    def __init__(self, connection: Connection, dialect: str, claims: MatchClaims) -> None:
        self._connection = connection
        found = statements(dialect, "tasks.sql")
        self._sql = _Sql(**{name: found[name] for name in _Sql._fields})
        self._claims = claims
        self._matched = MatchedTasks(dialect, claims)

    async def claim(self, request: ClaimRequest) -> Claimed:
        asked = {
            "shard": request.shard,
            "is_any": not request.reaction_ids,
            "reaction_ids": json.dumps(list(request.reaction_ids)),
            "most": CANDIDATES,
            "now_ms": now_ms(),
        }
        queries = Query(self._sql.waiting, asked), Query(self._sql.exhausted, asked)
        waiting, exhausted = await self._claims.read_due(*queries)
        if exhausted:
            await self._expire()
        due = [reaction_id for reaction_id, at_ms, now in waiting if at_ms <= now]
        later = [(at_ms - now) * _MS for _, at_ms, now in waiting if at_ms > now]
        claimed, waits = await self._claim_some(request, due)
        if due and not claimed and request.max_bytes < LARGEST:
            await self._check_fits(request, asked, due)
        cut = [timedelta(0)] if request.is_cut(claimed) else []
        return Claimed(claimed, min([*later, *waits, *cut], default=None), is_all=not due)

    async def extend(self, claims: Sequence[TaskClaim], lease: timedelta) -> Sequence[StaleClaim | None]:
        asked = {"claims": _json(claims), "lease_ms": check_lease(lease) // _MS, "now_ms": now_ms()}
        async with self._connection.transaction() as tx:
            await self._claims.materialize_owned(tx, claims)
            held = {row[0] for row in await tx.fetch(self._sql.extend, asked)}
        return [None if claim.task_id in held else stale_claim(claim) for claim in claims]

    async def settle(self, settlements: Sequence[Settlement]) -> Sequence[StaleClaim | None]:
        done = [claim for claim, outcome in settlements if isinstance(outcome, Done)]
        if done and len(done) == len(settlements):
            answers = await self._claims.finish(done)
            if answers is not None:
                return answers
        return await self._settle_all(settlements, done)

    async def _settle_all(
        self, settlements: Sequence[Settlement], done: Sequence[TaskClaim]
    ) -> Sequence[StaleClaim | None]:
        others = {each.claim.task_id: each for each in settlements if not isinstance(each.outcome, Done)}
        held: set[TaskId] = set()
        async with self._connection.transaction() as tx:
            await self._claims.materialize_owned(tx, [claim for claim, _ in settlements])
            if done:
                rows = await tx.fetch(self._sql.finish, {"claims": _json(done), "now_ms": now_ms()})
                held.update(row[0] for row in rows)
            if others:
                held.update(await self._settle(tx, others))
        return [None if claim.task_id in held else stale_claim(claim) for claim, _ in settlements]

    async def find(self, task_id: TaskId) -> Task | None:
        (rows,) = await self._connection.snapshot(Query(self._sql.found, {"task_id": task_id}))
        return _task(rows[0]) if rows else None

    async def made_of(self, reaction_id: str, global_seq: int, subject: str) -> Task | None:
        asked = {"reaction_id": reaction_id, "global_seq": global_seq, "subject": subject}
        (rows,) = await self._connection.snapshot(Query(self._sql.made_of, asked))
        return _task(rows[0]) if rows else None

    async def make(self, hits: Sequence[Match]) -> int:
        """Locks the match cursor, so that no matcher inserts the same task."""
        async with self._connection.transaction() as tx:
            ((now,),) = await tx.fetch(self._sql.lock_match_cursor, {"now_ms": now_ms()})
            for reaction_id in {hit.reaction.reaction_id for hit in hits}:
                if any(deleted for (deleted,) in await tx.fetch(self._sql.is_removed, {"reaction_id": reaction_id})):
                    raise NotFound(f"reaction {reaction_id!r} was removed; its tasks would never be claimed")
            return await self._matched.add_missing(tx, hits, now)
        raise AssertionError("unreachable")

    async def listed(
        self,
        *,
        reaction_id: str = "",
        status: int = 0,
        limit: int = 200,
        before: PagePosition | None = None,
        max_bytes: int | None = None,
        is_bare: bool = False,
    ) -> Sequence[Task]:
        before_seq, before_id = before or (_LAST, "")
        asked = {
            "reaction_id": reaction_id,
            "status": status,
            "limit": limit,
            "before_seq": before_seq,
            "before_id": before_id,
            "max_bytes": _LAST if max_bytes is None else max_bytes,
            "is_bare": is_bare,
        }
        (rows,) = await self._connection.snapshot(Query(self._sql.listed, asked))
        return [_task(row) for row in rows]

    async def dead(self, reaction_id: str, limit: int) -> Sequence[TaskId]:
        asked = {"reaction_id": reaction_id, "limit": limit}
        (rows,) = await self._connection.snapshot(Query(self._sql.dead, asked))
        return [row[0] for row in rows]

    async def replay(self, task_ids: Sequence[TaskId]) -> Sequence[TaskId]:
        async with self._connection.transaction() as tx:
            rows = await tx.fetch(self._sql.replay, {"task_ids": json.dumps(list(task_ids)), "now_ms": now_ms()})
            stage(tx, "replayed", rows)
        return [row[0] for row in rows]

    async def forget(self, before_ms: int) -> int:
        async with self._connection.transaction() as tx:
            return len(await tx.fetch(self._sql.forget, {"before_ms": before_ms}))

    async def outcomes(self) -> Sequence[Outcomes]:
        (rows,) = await self._connection.snapshot(Query(self._sql.outcomes, {}))
        return [Outcomes(row[0], TaskStatus(row[1]).name.lower(), *row[2:]) for row in rows]

    async def _expire(self) -> None:
        """Ends tasks as dead whose last attempt was never settled before its lease ended."""
        async with self._connection.transaction() as tx:
            stage(tx, "dead", await tx.fetch(self._sql.expire, {"now_ms": now_ms()}))

    async def _check_fits(self, request: ClaimRequest, asked: Mapping[str, object], due: Sequence[str]) -> None:
        """Raises TooLarge if no due task fits: without it the caller would never learn why it gets none."""
        named = {name: asked[name] for name in ("shard", "now_ms")}
        (((smallest,),),) = await self._connection.snapshot(
            Query(
                self._sql.smallest,
                {**named, "max_bytes": request.max_bytes, "reaction_ids": json.dumps(list(due))},
            )
        )
        if smallest is not None and smallest > request.max_bytes:
            raise TooLarge(
                f"the smallest due task takes {smallest:,} bytes, more than max_bytes, which is {request.max_bytes:,}"
            )

    async def _claim_some(self, request: ClaimRequest, due: Sequence[str]) -> tuple[list[Task], list[timedelta]]:
        """Claims a few reactions at a time, so that reactions at their limits do not delay others."""
        tasks: list[Task] = []
        waits: list[timedelta] = []
        left = _Left(request.limit, request.max_bytes)
        for first in range(0, len(due), AT_ONCE):
            if left.tasks > 0:
                found, more = await self._claim(request, due[first : first + AT_ONCE], left)
                tasks += found
                waits += more
                left = left.without(found)
        return tasks, waits

    async def _claim(
        self, request: ClaimRequest, due: Sequence[str], left: _Left
    ) -> tuple[list[Task], list[timedelta]]:
        """Claims what the limits of these reactions allow, and returns how long their rates delay the next."""
        taken: dict[str, list[Task]] = {}
        async with self._connection.transaction() as tx:
            known, leases, now = await self._limits(tx, due)
            for limit in (known[reaction_id] for reaction_id in due if reaction_id in known):
                starts = _share(limit, left.tasks, leases[limit.reaction_id], now).starts
                found = await self._take(tx, request, limit.reaction_id, left._replace(tasks=starts), now)
                taken[limit.reaction_id] = found
                left = left.without(found)
            waits = await self._pace(tx, [limit for limit in known.values() if limit.rate_per_s], taken, now)
        return [task for tasks in taken.values() for task in tasks], waits

    async def _pace(
        self, tx: Transaction, paced: Sequence[_Limit], taken: Mapping[str, Sequence[Task]], now: int
    ) -> list[timedelta]:
        """Records when the next task of each reaction may start, and returns how long that is from now."""
        moved = [
            limit._replace(next_start_us=_share(limit, len(taken[limit.reaction_id]), 0, now).next_start_us)
            for limit in paced
        ]
        if moved:
            rows = [{"reaction_id": limit.reaction_id, "next_start_at_us": limit.next_start_us} for limit in moved]
            await tx.fetch(self._sql.move_limits, {"limits": json.dumps(rows)})
        waits = [limits.wait_us(limit.rate_per_s, now * 1000, limit.next_start_us) for limit in moved]
        return [timedelta(microseconds=wait) for wait in waits if wait]

    async def _limits(
        self, tx: Transaction, reaction_ids: Sequence[str]
    ) -> tuple[Mapping[str, _Limit], Mapping[str, int], int]:
        asked = {"reaction_ids": json.dumps(list(reaction_ids)), "now_ms": now_ms()}
        known = {row[0]: _Limit(*row) for row in await tx.fetch(self._sql.lock_limits, asked)}
        leases = await tx.fetch(self._sql.leases, asked)
        return known, {row[0]: row[2] for row in leases}, leases[0][1]

    async def _take(
        self, tx: Transaction, request: ClaimRequest, reaction_id: str, left: _Left, now: int
    ) -> list[Task]:
        if not left.tasks:
            return []
        asked = {
            "reaction_id": reaction_id,
            "owner": request.owner,
            "shard": request.shard,
            "most": left.tasks,
            "max_bytes": left.max_bytes,
            "most_bytes": request.max_bytes,
            "lease_ms": request.lease_ms,
            "now": now,
        }
        tasks = [_task(row) for row in await tx.fetch(self._sql.claim, asked)]
        return sorted(tasks, key=lambda task: task.source_global_seq)

    async def _settle(self, tx: Transaction, others: Mapping[TaskId, Settlement]) -> list[TaskId]:
        claims = _json([claim for claim, _ in others.values()])
        rows = await tx.fetch(self._sql.lock_claims, {"claims": claims, "now_ms": now_ms()})
        after = {row[0]: _after(row, others[row[0]][1]) for row in rows}
        put = [{"task_id": task, **state._asdict()} for task, state in after.items()]
        if put:
            await tx.fetch(self._sql.put_settled, {"settled": json.dumps(put), "now_ms": now_ms()})
        dead = [row for row in rows if after[row[0]].status is TaskStatus.DLQ]
        stage(tx, "dead", [(*row[:5], after[row[0]].last_error) for row in dead])
        return list(after)


def _share(limit: _Limit, wanted: int, leases: int, now: int) -> limits.Share:
    return limits.share(
        wanted,
        slots=limit.max_concurrency - leases,
        rate_per_s=limit.rate_per_s,
        now_us=now * 1000,
        next_start_us=limit.next_start_us,
    )


def _after(row: Row, outcome: Outcome) -> NextState:
    task_id, _, _, _, attempts, retry_max, retry_backoff_ms, dlq_after_n, deleted, now = row
    policy = RetrySettings(retry_max, retry_backoff_ms, dlq_after_n, bool(deleted))
    chance = random.Random(f"{task_id} {attempts}")  # spreads retries, and is the same in every run of a test
    return settled(attempts, outcome, policy, now, chance.uniform(-1, 1))


def _json(claims: Sequence[TaskClaim]) -> str:
    return json.dumps([claim._asdict() for claim in claims])


def _task(row: Row) -> Task:
    fields = dict(zip(Task.__slots__, row, strict=True))
    return Task(**{**fields, "status": TaskStatus(fields["status"])})

"""How matches become rows: tasks are made, debounced ones gather, and those of a removed reaction die."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from tape.core.lifecycle import SOURCE_SUBJECT
from tape.core.ports import Transaction
from tape.core.sequence import Request, split_requests
from tape.core.task import (
    MAX_DEPTH,
    ClaimRequest,
    Match,
    Task,
    TaskId,
    TaskStatus,
    due_at_ms,
    shard_hash,
    task_id,
    told,
)
from tape.store.clock import now_ms
from tape.store.connection import Row
from tape.store.statements import statements

T = TypeVar("T")

ROWS: Final = 1_000
MOST_BYTES: Final = 8 << 20
TOO_DEEP: Final = f"caused by an entry at depth {MAX_DEPTH}, where a chain of reactions ends"


class _Sql(NamedTuple):
    insert: str
    lock_slots: str
    insert_claimed: str
    lock_waiting: str
    coalesce: str
    end_pending: str
    present: str
    newest: str


class MatchedTasks:
    """The statements of a matcher's block that concern tasks."""

    def __init__(self, dialect: str) -> None:
        found = statements(dialect, "tasks.sql")
        self._sql = _Sql(**{name: found[name] for name in _Sql._fields})

    async def add(self, tx: Transaction, hits: Sequence[Match], now: int, request: ClaimRequest | None) -> list[Task]:
        """Makes a task of each, or counts it as part of a newer one; those that were claimed for who wants them."""
        deep = [hit for hit in hits if hit.is_too_deep]
        waiting = [hit for hit in hits if hit.reaction.debounce_ms and not hit.is_too_deep]
        plain = [hit for hit in hits if not hit.reaction.debounce_ms and not hit.is_too_deep]
        claimed = await self._insert_plain(tx, plain, now, request)
        await self._gather(tx, waiting, now)
        await self._insert(tx, [_dead_row(hit) for hit in deep], now)
        stage(tx, "dead", (_told_of(hit) for hit in deep))
        return claimed

    async def _insert_plain(
        self, tx: Transaction, hits: Sequence[Match], now: int, request: ClaimRequest | None
    ) -> list[Task]:
        rows = [_row(hit, due_at_ms=now) for hit in hits]
        if request is None or not wanted_ids(request, hits):
            await self._insert(tx, rows, now)
            return []
        return await self._insert_claimed(tx, rows, now, request, wanted(request, hits))

    async def _insert_claimed(
        self,
        tx: Transaction,
        rows: Sequence[Mapping[str, object]],
        now: int,
        request: ClaimRequest,
        asked: Mapping[str, object],
    ) -> list[Task]:
        """What is made after the slots are used up is left for who claims next."""
        await tx.fetch(self._sql.lock_slots, asked)
        claimed: list[Task] = []
        for group in _groups(rows, _size(rows)):
            made = {**asked, "now": now, "hits": as_text(group), "most": request.limit - len(claimed)}
            found = await tx.fetch(self._sql.insert_claimed, made)
            shards = {task: shard for task, shard, status in found if status == TaskStatus.CLAIMED}
            claimed += claimed_tasks(group, shards, now, request)
        return claimed

    async def add_missing(self, tx: Transaction, hits: Sequence[Match], now: int) -> int:
        """Makes the tasks that are not there yet; a debounced one is also there if a newer of its subject is."""
        missing = await self._missing(tx, hits)
        deep = [hit for hit in missing if hit.is_too_deep]
        plain = [{**_row(hit, due_at_ms=now), "coalesced": hit.older} for hit in missing if not hit.is_too_deep]
        await self._insert(tx, [*plain, *map(_dead_row, deep)], now)
        stage(tx, "dead", map(_told_of, deep))
        return len(missing)

    async def _missing(self, tx: Transaction, hits: Sequence[Match]) -> list[Match]:
        names = [_named(hit) for hit in hits]
        there = await tx.fetch(self._sql.present, {"hits": json.dumps(names)})
        known, places = {row[0] for row in there}, {row[1] for row in there}
        left = [
            hit
            for hit, name in zip(hits, names, strict=True)
            if name["task_id"] not in known and hit.entry.global_seq not in places
        ]
        waiting = [hit for hit in left if hit.reaction.debounce_ms]
        newer = await self._newest(tx, waiting) if waiting else {}
        return [hit for hit in left if newer.get(hit.entry.subject, 0) < hit.entry.global_seq]

    async def _newest(self, tx: Transaction, hits: Sequence[Match]) -> dict[str, int]:
        subjects = json.dumps([hit.entry.subject for hit in hits])
        asked = {"reaction_id": hits[0].reaction.reaction_id, "subjects": subjects}
        return {row[0]: row[1] for row in await tx.fetch(self._sql.newest, asked)}

    async def end_pending(self, tx: Transaction, reaction_id: str, reason: str) -> int:
        """Ends them as dead without an entry for each, and says how many; the entry of a removal stands for all."""
        asked = {"reaction_id": reaction_id, "last_error": reason, "now_ms": now_ms()}
        return len(await tx.fetch(self._sql.end_pending, asked))

    async def _insert(self, tx: Transaction, rows: Sequence[Mapping[str, object]], now: int) -> None:
        for group in _groups(rows, _size(rows)):
            await tx.fetch(self._sql.insert, {"hits": as_text(group), "now": now})

    async def _gather(self, tx: Transaction, hits: Sequence[Match], now: int) -> None:
        """One task waits for each reaction and subject: the newest entry is in it, the others are counted."""
        newest: dict[tuple[str, str], tuple[Match, int]] = {}
        for hit in hits:
            key = hit.reaction.reaction_id, hit.entry.subject
            newest[key] = hit, newest[key][1] + 1 if key in newest else 0
        if not newest:
            return
        keys = [{"reaction_id": reaction_id, "subject": subject} for reaction_id, subject in newest]
        there = {tuple(row[:2]): row[2:] for row in await tx.fetch(self._sql.lock_waiting, {"keys": json.dumps(keys)})}
        moved, made = [], []
        for key, (hit, more) in newest.items():
            window = hit.reaction.debounce_ms
            if key in there:
                task, first = there[key]
                moved.append({**_row(hit, due_at_ms(now, first, window)), "task_id": task, "coalesced": more + 1})
            else:
                due = due_at_ms(now, now, window)
                made.append({**_row(hit, due), "first_at_ms": now, "coalesced": more})
        if moved:
            await tx.fetch(self._sql.coalesce, {"hits": json.dumps(moved)})
        await self._insert(tx, made, now)


def stage(tx: Transaction, verb: str, rows: Iterable[Row]) -> None:
    """The entries of tasks that died or were replayed: (task_id, reaction_id, source, subject, attempts, error)."""
    events = (
        told(verb, reaction_id, TaskId(task), source, {SOURCE_SUBJECT: subject, "attempts": count, "error": error})
        for task, reaction_id, source, subject, count, error in rows
    )
    for group in split_requests(events):
        tx.append(Request(events=group, opens=True))


def _groups(rows: Iterable[T], size: int) -> Iterator[list[T]]:
    left = iter(rows)
    while group := list(islice(left, size)):
        yield group


def _size(rows: Sequence[Mapping[str, object]]) -> int:
    """How many rows are sent at once: one entry may be large and match many reactions."""
    heaviest = max((len(str(row["payload_json"])) for row in rows), default=0)
    return max(1, min(ROWS, MOST_BYTES // (heaviest + 1)))


def wanted_ids(request: ClaimRequest, hits: Iterable[Match]) -> set[str]:
    """The reactions of some matches whose tasks are wanted."""
    return {hit.reaction.reaction_id for hit in hits}.intersection(request.reaction_ids)


def wanted(request: ClaimRequest, hits: Iterable[Match]) -> dict[str, object]:
    """Who wants how much of which, as statements take it."""
    reaction_ids = json.dumps(sorted(wanted_ids(request, hits)))
    return {"reaction_ids": reaction_ids, "owner": request.owner, "most": request.limit, "lease_ms": request.lease_ms}


def claimed_tasks(
    rows: Iterable[Mapping[str, Any]], shards: Mapping[str, int], now: int, request: ClaimRequest
) -> list[Task]:
    """The tasks of the rows that were claimed, which are those whose shards are known."""
    return [_task(row, shards[name], now, request) for row in rows if (name := row["task_id"]) in shards]


def as_text(rows: Sequence[Mapping[str, object]]) -> str:
    return msgspec.json.encode(rows).decode()


def _named(hit: Match) -> dict[str, object]:
    reaction_id, place = hit.reaction.reaction_id, hit.entry.global_seq
    return {"task_id": task_id(reaction_id, place), "reaction_id": reaction_id, "global_seq": place}


def _row(hit: Match, due_at_ms: int) -> dict[str, object]:
    reaction, entry, prev_value_json, _ = hit
    return {
        "task_id": task_id(reaction.reaction_id, entry.global_seq),
        "reaction_id": reaction.reaction_id,
        "status": int(TaskStatus.PENDING),
        "due_at_ms": due_at_ms,
        "last_error": "",
        "prev_value_json": prev_value_json,
        "first_at_ms": 0,
        "coalesced": 0,
        "global_seq": entry.global_seq,
        "seq": entry.seq,
        "run_id": entry.run_id,
        "shard_hash": shard_hash(entry.run_id),
        "kind": entry.kind,
        "type": entry.type,
        "subject": entry.subject,
        "schema_version": entry.schema_version,
        "ts_ms": entry.ts_ms,
        "payload_json": entry.payload_json or "",
        "trace_id": entry.trace_id,
        "span_id": entry.span_id,
    }


def _task(row: Mapping[str, Any], shard: int, now: int, request: ClaimRequest) -> Task:
    """A row that was claimed as it was made."""
    until = now + request.lease_ms
    return Task(
        task_id=row["task_id"],
        reaction_id=row["reaction_id"],
        shard=shard,
        source_run_id=row["run_id"],
        source_seq=row["seq"],
        source_global_seq=row["global_seq"],
        kind=row["kind"],
        type=row["type"],
        subject=row["subject"],
        schema_version=row["schema_version"],
        ts_ms=row["ts_ms"],
        payload_json=row["payload_json"],
        prev_value_json=row["prev_value_json"],
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
        trace_id=row["trace_id"],
        span_id=row["span_id"],
    )


def _dead_row(hit: Match) -> dict[str, object]:
    return {**_row(hit, due_at_ms=0), "status": int(TaskStatus.DLQ), "last_error": TOO_DEEP}


def _told_of(hit: Match) -> Row:
    reaction_id, place = hit.reaction.reaction_id, hit.entry.global_seq
    return task_id(reaction_id, place), reaction_id, place, hit.entry.subject, 0, TOO_DEEP

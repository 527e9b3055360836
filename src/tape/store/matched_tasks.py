"""How matches become rows: tasks are made, debounced ones gather, and those of a removed reaction die."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, NamedTuple, TypeVar

from tape.core.ports import Transaction
from tape.core.sequence import MAX_EVENTS, Request
from tape.core.task import MAX_DEPTH, Hit, TaskId, TaskStatus, due_at_ms, shard_hash, task_id, told
from tape.store.clock import now_ms
from tape.store.connection import Row
from tape.store.statements import statements

T = TypeVar("T")

ROWS: Final = 1_000
MOST_BYTES: Final = 8 << 20
TOO_DEEP: Final = f"caused by an entry at depth {MAX_DEPTH}, where a chain of reactions ends"


class _Sql(NamedTuple):
    insert: str
    lock_waiting: str
    coalesce: str
    kill_pending: str


class MatchedTasks:
    """The statements of a matcher's block that concern tasks."""

    def __init__(self, dialect: str) -> None:
        found = statements(dialect, "tasks.sql")
        self._sql = _Sql(**{name: found[name] for name in _Sql._fields})

    async def add(self, tx: Transaction, hits: Sequence[Hit], now: int) -> None:
        """Makes a task of each, or counts it as part of a newer one."""
        deep = [hit for hit in hits if hit.is_too_deep]
        waiting = [hit for hit in hits if hit.reaction.debounce_ms and not hit.is_too_deep]
        plain = [hit for hit in hits if not hit.reaction.debounce_ms and not hit.is_too_deep]
        await self._insert(tx, [_row(hit, due_at_ms=now) for hit in plain], now)
        await self._gather(tx, waiting, now)
        await self._insert(tx, [_dead_row(hit) for hit in deep], now)
        stage(tx, "dead", (_told_of(hit) for hit in deep))

    async def kill_pending(self, tx: Transaction, reaction_id: str, reason: str) -> None:
        asked = {"reaction_id": reaction_id, "last_error": reason, "now_ms": now_ms()}
        stage(tx, "dead", await tx.fetch(self._sql.kill_pending, asked))

    async def _insert(self, tx: Transaction, rows: Sequence[Mapping[str, object]], now: int) -> None:
        for group in _groups(rows, _size(rows)):
            await tx.fetch(self._sql.insert, {"hits": json.dumps(group), "now": now})

    async def _gather(self, tx: Transaction, hits: Sequence[Hit], now: int) -> None:
        """One task waits for each reaction and subject: the newest entry is in it, the others are counted."""
        newest: dict[tuple[str, str], tuple[Hit, int]] = {}
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
    """The entries of tasks that died or were replayed: (task_id, reaction_id, source, count of attempts, error)."""
    for group in _groups(rows, MAX_EVENTS):
        events = (
            told(verb, reaction_id, TaskId(task), source, {"attempts": attempts, "error": error})
            for task, reaction_id, source, attempts, error in group
        )
        tx.append(Request(events=tuple(events), opens=True))


def _groups(rows: Iterable[T], size: int) -> Iterator[list[T]]:
    left = iter(rows)
    while group := list(islice(left, size)):
        yield group


def _size(rows: Sequence[Mapping[str, object]]) -> int:
    """How many rows are sent at once: one entry may be large and match many reactions."""
    heaviest = max((len(str(row["payload_json"])) for row in rows), default=0)
    return max(1, min(ROWS, MOST_BYTES // (heaviest + 1)))


def _row(hit: Hit, due_at_ms: int) -> dict[str, object]:
    reaction, entry, prev_value_json = hit
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


def _dead_row(hit: Hit) -> dict[str, object]:
    return {**_row(hit, due_at_ms=0), "status": int(TaskStatus.DLQ), "last_error": TOO_DEEP}


def _told_of(hit: Hit) -> Row:
    reaction_id, place = hit.reaction.reaction_id, hit.entry.global_seq
    return task_id(reaction_id, place), reaction_id, place, 0, TOO_DEEP

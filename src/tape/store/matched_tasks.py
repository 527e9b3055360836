"""Inserts the tasks of matches: plain, debounced, missing and dead ones."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from tape.core.lifecycle import SOURCE_SUBJECT
from tape.core.ports import Transaction
from tape.core.sequence import AppendRequest, split_requests
from tape.core.task import (
    MAX_DEPTH,
    ClaimRequest,
    Match,
    Task,
    TaskId,
    TaskStatus,
    due_at_ms,
    task_event,
    task_id,
)
from tape.store.clock import now_ms
from tape.store.connection import Row
from tape.store.match_claims import MatchClaims
from tape.store.statements import statements
from tape.store.task_rows import groups, pending_row, rows_json

TOO_DEEP: Final = f"caused by an entry at depth {MAX_DEPTH}, where a chain of reactions ends"


class _Sql(NamedTuple):
    insert: str
    lock_waiting: str
    coalesce: str
    end_pending: str
    present: str
    newest: str


class MatchedTasks:
    """The statements about tasks in the transaction of a matcher."""

    def __init__(self, dialect: str, claims: MatchClaims) -> None:
        self._claims = claims
        found = statements(dialect, "tasks.sql")
        self._sql = _Sql(**{name: found[name] for name in _Sql._fields})

    async def add(
        self, tx: Transaction, matches: Sequence[Match], now: int, request: ClaimRequest | None
    ) -> list[Task]:
        """Inserts a task for each match, or coalesces it with a debounced one; returns those claimed for `request`."""
        deep = [match for match in matches if match.is_too_deep]
        debounced = [match for match in matches if match.reaction.debounce_ms and not match.is_too_deep]
        plain = [match for match in matches if not match.reaction.debounce_ms and not match.is_too_deep]
        claimed: list[Task] = []
        if request is None:
            await self._insert(tx, [pending_row(match, due_at_ms=now) for match in plain], now)
        else:
            claimed = await self._claims.insert(tx, plain, now, request)
        await self._debounce(tx, debounced, now)
        await self._insert(tx, [_dead_row(match) for match in deep], now)
        stage(tx, "dead", map(_death, deep))
        return claimed

    async def add_missing(self, tx: Transaction, matches: Sequence[Match], now: int) -> int:
        """Inserts the tasks that do not exist; a debounced one exists if a newer one of its subject does."""
        missing = await self._missing(tx, matches)
        deep = [match for match in missing if match.is_too_deep]
        plain = [
            {**pending_row(match, due_at_ms=now), "coalesced": match.older}
            for match in missing
            if not match.is_too_deep
        ]
        await self._insert(tx, [*plain, *map(_dead_row, deep)], now)
        stage(tx, "dead", map(_death, deep))
        return len(missing)

    async def _missing(self, tx: Transaction, matches: Sequence[Match]) -> list[Match]:
        names = [_named(match) for match in matches]
        there = await tx.fetch(self._sql.present, {"matches": json.dumps(names)})
        known, places = {row[0] for row in there}, {row[1] for row in there}
        left = [
            match
            for match, name in zip(matches, names, strict=True)
            if name["task_id"] not in known and match.entry.global_seq not in places
        ]
        waiting = [match for match in left if match.reaction.debounce_ms]
        newer = await self._newest(tx, waiting) if waiting else {}
        return [match for match in left if newer.get(match.entry.subject, 0) < match.entry.global_seq]

    async def _newest(self, tx: Transaction, matches: Sequence[Match]) -> dict[str, int]:
        subjects = json.dumps([match.entry.subject for match in matches])
        asked = {"reaction_id": matches[0].reaction.reaction_id, "subjects": subjects}
        return {row[0]: row[1] for row in await tx.fetch(self._sql.newest, asked)}

    async def end_pending(self, tx: Transaction, reaction_id: str, reason: str) -> int:
        """Ends pending tasks as dead and returns how many; the entry of the removal stands for all of them."""
        asked = {"reaction_id": reaction_id, "last_error": reason, "now_ms": now_ms()}
        return len(await tx.fetch(self._sql.end_pending, asked))

    async def _insert(self, tx: Transaction, rows: Sequence[Mapping[str, object]], now: int) -> None:
        for group in groups(rows):
            await tx.fetch(self._sql.insert, {"matches": rows_json(group), "now": now})

    async def _debounce(self, tx: Transaction, matches: Sequence[Match], now: int) -> None:
        """Keeps one pending task for each reaction and subject: it has the newest entry and counts the others."""
        newest: dict[tuple[str, str], tuple[Match, int]] = {}
        for match in matches:
            key = match.reaction.reaction_id, match.entry.subject
            newest[key] = match, newest[key][1] + 1 if key in newest else 0
        if not newest:
            return
        keys = [{"reaction_id": reaction_id, "subject": subject} for reaction_id, subject in newest]
        there = {tuple(row[:2]): row[2:] for row in await tx.fetch(self._sql.lock_waiting, {"keys": json.dumps(keys)})}
        moved, made = [], []
        for key, (match, more) in newest.items():
            window = match.reaction.debounce_ms
            if key in there:
                task, first = there[key]
                moved.append(
                    {**pending_row(match, due_at_ms(now, first, window)), "task_id": task, "coalesced": more + 1}
                )
            else:
                due = due_at_ms(now, now, window)
                made.append({**pending_row(match, due), "first_at_ms": now, "coalesced": more})
        if moved:
            await tx.fetch(self._sql.coalesce, {"matches": json.dumps(moved)})
        await self._insert(tx, made, now)


def stage(tx: Transaction, verb: str, rows: Iterable[Row]) -> None:
    """Stages an entry for each dead or replayed task: (task_id, reaction_id, source, subject, attempts, error)."""
    events = (
        task_event(
            verb, reaction_id, TaskId(task), source, {SOURCE_SUBJECT: subject, "attempts": count, "error": error}
        )
        for task, reaction_id, source, subject, count, error in rows
    )
    for group in split_requests(events):
        tx.append(AppendRequest(events=group, opens=True))


def _named(match: Match) -> dict[str, object]:
    reaction_id, place = match.reaction.reaction_id, match.entry.global_seq
    return {"task_id": task_id(reaction_id, place), "reaction_id": reaction_id, "global_seq": place}


def _dead_row(match: Match) -> dict[str, object]:
    return {**pending_row(match, due_at_ms=0), "status": int(TaskStatus.DLQ), "last_error": TOO_DEEP}


def _death(match: Match) -> Row:
    reaction_id, place = match.reaction.reaction_id, match.entry.global_seq
    return task_id(reaction_id, place), reaction_id, place, match.entry.subject, 0, TOO_DEEP

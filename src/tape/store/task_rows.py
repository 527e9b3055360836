"""Matches as rows of tasks, in groups of a bounded size."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from tape.core.task import Match, TaskStatus, shard_hash, task_id

GROUP_ROWS: Final = 1_000
GROUP_BYTES: Final = 8 << 20


def pending_row(match: Match, due_at_ms: int) -> dict[str, Any]:
    reaction, entry, prev_value_json, _ = match
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


def groups(rows: Sequence[Mapping[str, Any]]) -> Iterator[Sequence[Mapping[str, Any]]]:
    """Rows as they are sent in one statement: one entry may be large and match many reactions."""
    heaviest = max((len(row["payload_json"]) for row in rows), default=0)
    size = max(1, min(GROUP_ROWS, GROUP_BYTES // (heaviest + 1)))
    for first in range(0, len(rows), size):
        yield rows[first : first + size]


def rows_json(rows: Sequence[Mapping[str, Any]]) -> str:
    return msgspec.json.encode(rows).decode()

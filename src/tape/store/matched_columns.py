"""A page of plain matches as columns, and the tasks that were claimed of it."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final

from tape.core.task import Hit, Task, TaskId, TaskStatus, Want, shard_hash, task_id

SEPARATOR: Final = "\x1f"  # no JSON text and none of our names can hold a control character
_MS: Final = timedelta(milliseconds=1)


class MatchedColumns:
    """What one message says of a page: a text for each column."""

    def __init__(self, hits: Sequence[Hit]) -> None:
        self._hits = hits
        self._names = [task_id(hit.reaction.reaction_id, hit.entry.global_seq) for hit in hits]

    @property
    def parameters(self) -> dict[str, object]:
        entries = [hit.entry for hit in self._hits]
        runs = [entry.run_id for entry in entries]
        hashes = {run_id: str(shard_hash(run_id)) for run_id in set(runs)}
        previous = [hit.prev_value_json for hit in self._hits]
        return {
            "task_ids": SEPARATOR.join(self._names),
            "matched_ids": _joined([hit.reaction.reaction_id for hit in self._hits]),
            "places": _joined([str(entry.global_seq) for entry in entries]),
            "seqs": _joined([str(entry.seq) for entry in entries]),
            "run_ids": _joined(runs),
            "hashes": _joined([hashes[run_id] for run_id in runs]),
            "kinds": _joined([entry.kind for entry in entries]),
            "types": _joined([entry.type for entry in entries]),
            "subjects": _joined([entry.subject for entry in entries]),
            "versions": _joined([str(entry.schema_version) for entry in entries]),
            "times": _joined([str(entry.ts_ms) for entry in entries]),
            "payloads": _joined([entry.payload_json or "" for entry in entries]),
            "traces": _joined([entry.trace_id for entry in entries]),
            "spans": _joined([entry.span_id for entry in entries]),
            "previous": previous if any(previous) else [""],
        }

    def claimed(self, shards: Mapping[str, int], now: int, want: Want) -> list[Task]:
        """The tasks of the matches that were claimed, which are those whose shards are known."""
        until = now + want.lease // _MS
        named = zip(self._names, self._hits, strict=True)
        return [_task(name, hit, shards[name], now, until, want.owner) for name, hit in named if name in shards]


def _joined(values: Sequence[str]) -> str:
    """The values in one text, or the one that all of them are."""
    return values[0] if values.count(values[0]) == len(values) else SEPARATOR.join(values)


def _task(name: TaskId, hit: Hit, shard: int, now: int, until: int, owner: str) -> Task:
    entry = hit.entry
    return Task(
        task_id=name,
        reaction_id=hit.reaction.reaction_id,
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
        prev_value_json=hit.prev_value_json,
        status=TaskStatus.CLAIMED,
        attempt=1,
        attempts=1,
        next_attempt_at_ms=until,
        lease_owner=owner,
        lease_expires_at_ms=until,
        last_error="",
        coalesced=0,
        created_at_ms=now,
        completed_at_ms=0,
        trace_id=entry.trace_id,
        span_id=entry.span_id,
    )

"""A page of plain matches as columns, reaction by reaction, and the tasks that were given of it."""

from collections.abc import Sequence
from itertools import chain

from tape.core.task import ClaimRequest, Match, Task, TaskId, TaskStatus, shard_hash, task_prefix


class MatchedColumns:
    """What one message says of a page; what else there is to say of its entries, the journal knows."""

    def __init__(self, hits: Sequence[Match]) -> None:
        self._hits: dict[str, list[Match]] = {}
        for hit in hits:
            self._hits.setdefault(hit.reaction.reaction_id, []).append(hit)
        self._hashes = {run_id: shard_hash(run_id) for run_id in {hit.entry.run_id for hit in hits}}

    @property
    def parameters(self) -> dict[str, object]:
        entries = [hit.entry for hit in chain.from_iterable(self._hits.values())]
        places = [entry.global_seq for entry in entries]
        hashes = [self._hashes[entry.run_id] for entry in entries] if len(self._hashes) > 1 else self._hashes.values()
        return {
            "lowest": min(places),
            "matched_ids": list(self._hits),
            "prefixes": [task_prefix(reaction_id) for reaction_id in self._hits],
            "sizes": [len(hits) for hits in self._hits.values()],
            "places": places,
            "hashes": list(hashes),
        }

    def claimed(self, given: Sequence[int], now: int, request: ClaimRequest) -> list[Task]:
        """The tasks of the first matches of each reaction, as many as were given."""
        groups = zip(self._hits.values(), given, strict=True)
        return [
            claimed(hit, self._hashes[hit.entry.run_id], now, request) for hits, count in groups for hit in hits[:count]
        ]


def claimed(hit: Match, run_hash: int, now: int, request: ClaimRequest) -> Task:
    """The task of a match, claimed as it was made."""
    reaction, entry, prev_value_json, _ = hit
    until = now + request.lease_ms
    return Task(
        task_id=TaskId(f"{task_prefix(reaction.reaction_id)}.{entry.global_seq:015}"),
        reaction_id=reaction.reaction_id,
        shard=run_hash % reaction.num_shards,
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

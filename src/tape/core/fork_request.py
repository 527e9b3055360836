"""The request that creates a fork: lineage, first entry and mutation together."""

from hashlib import sha256
from os import urandom

from tape.core.codec import JsonValue
from tape.core.event import Event, Trace
from tape.core.fork import FORK, RUN, Fork
from tape.core.fork_policy import EffectPolicy
from tape.core.ids import RunId
from tape.core.sequence import AppendRequest


def fork_request(
    run_id: RunId,
    fork: Fork,
    mutation: JsonValue = None,
    reason: str | None = None,
    key: str | None = None,
    trace: Trace | None = None,
    effects: EffectPolicy | None = None,
) -> AppendRequest:
    """Creates the child with its fork entry, followed by the mutation if there is one."""
    payload: dict[str, JsonValue] = {"parent_run_id": fork.parent_run_id, "at_seq": fork.at_seq}
    if reason is not None:
        payload["reason"] = reason
    if effects is not None:
        payload["effects"] = effects.value
    subject = f"/tape/run/forked/{fork.parent_run_id}/{run_id}"
    forked = Event(run_id=run_id, payload=payload, kind=RUN, type=FORK, subject=subject, trace=trace)
    if mutation is None:
        return AppendRequest(events=(forked,), key=key, fork=fork)
    changed = Event(run_id=run_id, payload=mutation, type="mutation", trace=trace)
    return AppendRequest(events=(forked, changed), key=key, fork=fork)


def new_run_id(fork: Fork, key: str | None) -> RunId:
    """A run id for a child without one; a retry with the same key gets the same id."""
    if key is None:
        return RunId(f"fork-{urandom(16).hex()}")
    return RunId(f"fork-{sha256(f'{fork.parent_run_id} {fork.at_seq} {key}'.encode()).hexdigest()[:32]}")

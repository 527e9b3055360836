"""The ledgers of a fork: what its parent had settled at the fork point, without anything that would act again.

A child has no obligations for its parent's effects, and offers nothing to dispatchers.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tape.core import codec
from tape.core.budget import Amount, Budget
from tape.core.claim import UNCLAIMED
from tape.core.codec import JsonValue
from tape.core.decision import Decision
from tape.core.effect import Effect, EffectStatus, Semantics
from tape.core.errors import NotReady
from tape.core.event import Entry
from tape.core.fork import Fork
from tape.core.fork_policy import EffectPolicy, key_in, labels_of_child
from tape.core.fork_request import fork_request, new_run_id
from tape.core.gate import Gate
from tape.core.ids import RunId, Seq
from tape.core.ports import CellSnapshot
from tape.core.run_state import RunState, RunStatus
from tape.core.sequence import CellChange
from tape.runs import decisions, effects, gates, lifecycle
from tape.runs.budgets import BUDGETS
from tape.runs.decisions import DECISIONS
from tape.runs.effects import EFFECTS
from tape.runs.gates import GATES
from tape.runs.ledger_store import LedgerStore
from tape.runs.lifecycle import RUNS
from tape.runs.replay import read_through
from tape.telemetry import current_trace

OUTCOMES = frozenset({"confirmed", "failed", "reconciled"})


@dataclass(slots=True)
class SettledHistory:
    """What a range of a run's entries has settled."""

    effects: dict[str, EffectStatus] = field(default_factory=dict)
    decisions: set[int] = field(default_factory=set)
    gates: dict[str, list[str]] = field(default_factory=dict)
    budget: Mapping[str, Any] | None = None


def settled_by(entries: Iterable[Entry], run_id: RunId) -> SettledHistory:
    """Folds the entries; keys are those that the run itself uses for what it inherited."""
    found = SettledHistory()
    for entry in entries:
        payload: Any = entry.payload if isinstance(entry.payload, dict) else {}
        match entry.kind:
            case "effect" if entry.type in OUTCOMES:
                key = key_in(payload["idempotency_key"], _owner(entry), run_id)
                found.effects[key] = EffectStatus(payload["status"])
            case "decision":
                found.decisions.add(payload["decision_index"])
            case "gate" if entry.type == "released":
                found.gates.setdefault(payload["gate"], []).append(payload["resolution_json"])
            case "budget":
                found.budget = payload
            case _:
                pass
    return found


def child_of(run: RunState, child: RunId, at_seq: int, policy: EffectPolicy, now_ms: int) -> RunState:
    """A runnable run; its function replays what it inherits and then continues."""
    return RunState(
        run_id=child,
        of=replace(run.of, invocation=child),
        status=RunStatus.RUNNABLE,
        lease_ms=run.lease_ms,
        started_at_ms=now_ms,
        identity=run.identity,
        scopes=run.scopes,
        labels=labels_of_child(run.labels, run.run_id, at_seq, policy),
    )


def cells_of_child(
    child: RunState,
    parent: RunState,
    settled: SettledHistory,
    records: Sequence[Decision | Effect],
    mutation: JsonValue,
) -> tuple[CellChange, ...]:
    """The child's cells, all of them new."""
    blank = CellSnapshot(now_ms=child.started_at_ms, cells={})
    cells = [lifecycle.changed(blank, child)]
    for record in records:
        if isinstance(record, Decision) and record.decision_index in settled.decisions:
            own = replace(record, run_id=child.run_id)
            cells.append(decisions.changed(blank, own))
        elif isinstance(record, Effect) and record.idempotency_key in settled.effects:
            cells.append(effects.changed(blank, _served(record, parent.run_id, child.run_id)))
    for name, resolutions in settled.gates.items():
        gate = Gate(run_id=child.run_id, gate=name, resolutions=tuple(resolutions))
        cells.append(GATES.change(blank, gates.key_of(child.run_id, name), gate, gates.RELEASED))
    if settled.budget is not None:
        cells.append(BUDGETS.change(blank, child.run_id, _budget(child.run_id, settled.budget), "set"))
    if mutation is not None:
        cells.append(effects.changed(blank, _mutation(child, mutation)))
    return tuple(cells)


async def fork(
    store: LedgerStore,
    parent: RunId,
    at_seq: int,
    policy: EffectPolicy,
    mutation: JsonValue = None,
    reason: str | None = None,
) -> list[Entry]:
    """Creates a child with inherited ledgers in one request; a run without ledgers leaves none to its child."""
    origin = Fork(parent, Seq(at_seq))
    child = new_run_id(origin, None)
    request = fork_request(child, origin, mutation, reason, trace=current_trace(), effects=policy)
    snapshot = await store.cells.snapshot((RUNS.at(parent),))
    run = RUNS.find(snapshot, parent)
    if run is not None:
        if run.compacted_at_ms:
            raise NotReady(f"run {parent!r} was compacted, so its results are gone; fork it without effects")
        settled = settled_by(await read_through(store.journal, parent, Seq(1), Seq(at_seq)), parent)
        state = child_of(run, child, at_seq, policy, snapshot.now_ms)
        cells = cells_of_child(state, run, settled, await _records(store, parent), mutation)
        request = replace(request, cells=cells)
    return list(await store.journal.submit(request))


async def _records(store: LedgerStore, run_id: RunId) -> list[Decision | Effect]:
    found = [await store.under(ledger, run_id) for ledger in (DECISIONS.name, EFFECTS.name)]
    return [*DECISIONS.states(found[0]), *EFFECTS.states(found[1])]


def _owner(entry: Entry) -> str:
    """The run whose ledger an entry is about: the last segment of its subject."""
    return entry.subject.rpartition("/")[2]


def _served(effect: Effect, parent: RunId, child: RunId) -> Effect:
    key = key_in(effect.idempotency_key, parent, child)
    return replace(effect, run_id=child, idempotency_key=key, business_key="", compensation=None, claim=UNCLAIMED)


def _budget(run_id: RunId, payload: Mapping[str, Any]) -> Budget:
    """Caps and spent amounts; reservations stay with the parent."""
    usd_cap = payload["usd_cap"]
    return Budget(
        run_id=run_id,
        usd_cap_micros=None if usd_cap is None else Amount.of(usd_cap).usd_micros,
        token_cap=payload["token_cap"],
        spent=Amount.of(payload["usd_spent"], payload["tokens_spent"]),
    )


def _mutation(child: RunState, mutation: JsonValue) -> Effect:
    """The mutation as an effect, where the child's function reads it."""
    return Effect(
        run_id=child.run_id,
        idempotency_key=f"{child.run_id}/mutation",
        tool="mutation",
        status=EffectStatus.CONFIRMED,
        semantics=Semantics.OBSERVE_ONLY,
        response_json=codec.encode(mutation),
        began_at_ms=child.started_at_ms,
        settled_at_ms=child.started_at_ms,
    )

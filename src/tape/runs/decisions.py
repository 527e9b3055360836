"""The ledger of decisions: the first one recorded at an index stays."""

from dataclasses import fields, replace
from functools import partial
from typing import Final

from tape.core.caller import Caller
from tape.core.decision import Decision, DecisionSpec
from tape.core.event import check_run_id
from tape.core.page import Page
from tape.core.ports import CellSnapshot
from tape.core.sequence import CellChange
from tape.operations.effects import GetDecision, ListDecisions, RecordDecision
from tape.runs.ledger import Ledger, LedgerEvent, Transition, ascending, check_repeat, part
from tape.runs.ledger_store import LedgerStore
from tape.runs.lifecycle import COMPACTIONS, RUNS, active, fenced, is_compacted


def key_of(run_id: str, decision_index: int) -> str:
    return f"{run_id}/{ascending(decision_index)}"


DECISIONS: Final = Ledger("decision", Decision, lambda decision: key_of(decision.run_id, decision.decision_index))
RECORDED: Final = "recorded"


def record(snapshot: CellSnapshot, decision: Decision, fence: int | None = None) -> Transition[Decision]:
    """Records the decision, unless there is one at its index."""
    key = key_of(decision.run_id, decision.decision_index)
    stored = DECISIONS.find(snapshot, key)
    if stored is not None:
        _check_repeat(snapshot, stored, decision)
        return Transition(result=stored)
    run = active(snapshot, decision.run_id)
    written = replace(decision, ts_ms=snapshot.now_ms)
    cells = (changed(snapshot, written), *fenced(snapshot, run, fence))
    return Transition(result=written, cells=cells, events=(_event(written),))


def _check_repeat(snapshot: CellSnapshot, stored: Decision, decision: Decision) -> None:
    """Refuses another question; another answer to the same one is what the first answer replaces.

    A compacted decision has no bodies to compare.
    """
    is_blank = not (stored.request_json or stored.response_json or stored.rationale)
    asked = "" if is_blank and is_compacted(snapshot, decision.run_id) else decision.request_json
    what = f"decision {decision.decision_index} of run {decision.run_id!r}"
    check_repeat(what, (stored.model, stored.request_json), (decision.model, asked))


def changed(snapshot: CellSnapshot, decision: Decision) -> CellChange:
    key = key_of(decision.run_id, decision.decision_index)
    return DECISIONS.change(snapshot, key, decision, RECORDED, served_by=("", decision.model))


class Decisions:
    def __init__(self, store: LedgerStore) -> None:
        self._store = store

    async def record(self, request: RecordDecision, caller: Caller) -> Decision:
        decision = Decision(**{each.name: getattr(request, each.name) for each in fields(DecisionSpec)})
        key = key_of(check_run_id(decision.run_id), decision.decision_index)
        ids = RUNS.at(decision.run_id), COMPACTIONS.at(decision.run_id), DECISIONS.at(key)
        return await self._store.change(ids, partial(record, decision=decision, fence=request.fence), caller)

    async def get(self, request: GetDecision, caller: Caller) -> Decision | None:
        return await self._store.find(DECISIONS, key_of(request.run_id, request.decision_index))

    async def listed(self, request: ListDecisions, caller: Caller) -> Page[Decision]:
        model = part(request.model) if request.model else ""
        return await self._store.page(DECISIONS, request, (RECORDED,), request.run_id, model)


def _event(decision: Decision) -> LedgerEvent:
    return LedgerEvent(
        run_id=decision.run_id,
        kind="decision",
        verb="recorded",
        dims=(decision.run_id, str(decision.decision_index)),
        payload={
            "decision_index": decision.decision_index,
            "model": decision.model,
            "policy_version": decision.policy_version,
            "rationale": decision.rationale,
        },
    )

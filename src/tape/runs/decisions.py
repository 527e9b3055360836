"""The ledger of decisions: the first one recorded at an index stays."""

from dataclasses import replace
from functools import partial
from typing import Final

from tape.core.caller import PLAIN, Caller
from tape.core.decision import Decision
from tape.core.event import check_run_id
from tape.core.ports import CellSnapshot
from tape.runs.ledger import Ledger, LedgerEvent, Transition
from tape.runs.ledger_store import LedgerStore
from tape.runs.lifecycle import RUNS, active, fenced

DECISIONS: Final = Ledger("decision", Decision)
DIGITS: Final = 19  # fixed width, so that keys sort by number


def key_of(run_id: str, decision_index: int) -> str:
    return f"{run_id}/{decision_index:0{DIGITS}}"


def record(snapshot: CellSnapshot, decision: Decision, fence: int | None = None) -> Transition[Decision]:
    """Records the decision, unless there is one at its index."""
    key = key_of(decision.run_id, decision.decision_index)
    stored = DECISIONS.find(snapshot, key)
    if stored is not None:
        return Transition(result=stored)
    run = active(snapshot, decision.run_id)
    written = replace(decision, ts_ms=snapshot.now_ms)
    cells = (DECISIONS.change(snapshot, key, written, "recorded"), *fenced(snapshot, run, fence))
    return Transition(result=written, cells=cells, events=(_event(written),))


class Decisions:
    def __init__(self, store: LedgerStore) -> None:
        self._store = store

    async def record(self, decision: Decision, fence: int | None = None, caller: Caller = PLAIN) -> Decision:
        """The stored decision: this one, or the one recorded first."""
        key = key_of(check_run_id(decision.run_id), decision.decision_index)
        ids = RUNS.at(decision.run_id), DECISIONS.at(key)
        return await self._store.change(ids, partial(record, decision=decision, fence=fence), caller)

    async def find(self, run_id: str, decision_index: int) -> Decision | None:
        key = key_of(check_run_id(run_id), decision_index)
        return await self._store.find(DECISIONS, key)

    async def listed(self, run_id: str) -> list[Decision]:
        """All decisions of a run, in order."""
        return list(DECISIONS.states(await self._store.under(DECISIONS.name, check_run_id(run_id))))


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

"""Compaction: deletes the bodies of a settled run's decisions and effects and keeps the records."""

from collections.abc import Iterator
from dataclasses import asdict, replace
from functools import partial
from itertools import islice
from typing import Final, TypeAlias

from tape.core.caller import Caller
from tape.core.errors import NotReady
from tape.core.ids import RunId
from tape.core.ports import CellSnapshot
from tape.core.run_state import ACTIVE, Compaction, RunState, RunStatus
from tape.core.sequence import CellChange
from tape.runs import decisions, effects
from tape.runs.decisions import DECISIONS
from tape.runs.effects import EFFECTS
from tape.runs.ledger import Transition
from tape.runs.ledger_store import LedgerStore
from tape.runs.lifecycle import COMPACTIONS, DEBTS, RUNS, Debt, changed, closable, event_of, find

BATCH: Final = 100

Progress: TypeAlias = Compaction | None


async def compact(store: LedgerStore, run_id: RunId, caller: Caller) -> Compaction:
    """Blanks bodies in requests of limited size, then records a report; an interrupted compaction continues."""
    while True:
        done = await store.change_from(partial(_snapshot, store, run_id), partial(compact_batch, run_id=run_id), caller)
        if done is not None:
            return done


def compact_batch(snapshot: CellSnapshot, run_id: RunId) -> Transition[Progress]:
    """Blanks the next bodies, or finishes with the report when none are left; refuses a run that is not settled."""
    run, debt = find(snapshot, run_id), DEBTS.find(snapshot, run_id) or Debt()
    if run.compacted_at_ms:
        return Transition(result=Compaction(already_compacted=True))
    _check_settled(snapshot, run, debt)
    report = COMPACTIONS.find(snapshot, run_id) or Compaction()
    blanked = list(islice(_blanked(snapshot), BATCH))
    if blanked:
        report = _counted(report, blanked)
        cells = tuple(change for change, _ in blanked)
        return Transition(result=None, cells=(*cells, COMPACTIONS.change(snapshot, run_id, report, "under way")))
    compacted = replace(run, compacted_at_ms=snapshot.now_ms)
    event = replace(event_of(compacted, {"report": asdict(report)}), verb="compacted")
    cells = changed(snapshot, compacted), COMPACTIONS.change(snapshot, run_id, report, "done")
    return Transition(result=report, cells=cells, events=(event,), opens=True, closes=closable(run, debt))


def _check_settled(snapshot: CellSnapshot, run: RunState, debt: Debt) -> None:
    if run.status in (*ACTIVE, RunStatus.COMPENSATING):
        raise NotReady(f"run {run.run_id!r} is {run.status}, not terminal; compact it after its end")
    unsettled = [effect for effect in EFFECTS.states(snapshot.cells) if not effect.is_settled]
    if debt.is_due or unsettled:
        raise NotReady(f"run {run.run_id!r} is not settled: it has open obligations or effects without an outcome")


def _blanked(snapshot: CellSnapshot) -> Iterator[tuple[CellChange, int]]:
    """The cells that still hold a body, without it, and the bytes that this saves."""
    for decision in DECISIONS.states(snapshot.cells):
        if saved := _weight(decision.request_json, decision.response_json, decision.rationale):
            empty = replace(decision, request_json="", response_json="", rationale="")
            yield decisions.changed(snapshot, empty), saved
    for effect in EFFECTS.states(snapshot.cells):
        if saved := _weight(effect.request_json, effect.response_json, effect.error_json):
            bare = replace(effect, request_json="", response_json="", error_json="")
            yield effects.changed(snapshot, bare), saved


def _weight(*bodies: str) -> int:
    return sum(len(body.encode()) for body in bodies)


def _counted(report: Compaction, blanked: list[tuple[CellChange, int]]) -> Compaction:
    ledgers = [change.id.ledger for change, _ in blanked]
    return Compaction(
        decisions_zeroed=report.decisions_zeroed + ledgers.count(DECISIONS.name),
        effects_zeroed=report.effects_zeroed + ledgers.count(EFFECTS.name),
        bytes_saved=report.bytes_saved + sum(saved for _, saved in blanked),
    )


async def _snapshot(store: LedgerStore, run_id: RunId) -> CellSnapshot:
    snapshot = await store.cells.snapshot((RUNS.at(run_id), DEBTS.at(run_id), COMPACTIONS.at(run_id)))
    of_run = [await store.under(ledger, run_id) for ledger in (DECISIONS.name, EFFECTS.name)]
    return snapshot._replace(cells={**snapshot.cells, **of_run[0], **of_run[1]})

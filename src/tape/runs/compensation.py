"""Transitions of obligations: registered with their effect, compensated newest first, only after the run failed."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Final, NamedTuple

from tape.core.app import ANY, serves
from tape.core.codec import JsonValue
from tape.core.effect import Compensation
from tape.core.errors import NotFound, UsageError
from tape.core.fork_policy import policy_of
from tape.core.ids import RunId
from tape.core.obligation import Obligation, ObligationClaim, ObligationStatus
from tape.core.ports import CellSnapshot
from tape.core.run_state import RunState
from tape.core.sequence import CellChange, CellId
from tape.runs.ledger import Ledger, LedgerEvent, Transition, check_repeat, descending, parts
from tape.runs.lifecycle import DEBTS, Debt, closable, find

DUPLICATE: Final = "#duplicate"  # no kind, because an escaped one holds no "#"


def place_of(run_id: str, number: int) -> str:
    """Obligations of a run are listed newest first."""
    return f"{run_id}/{descending(number)}"


OBLIGATIONS: Final = Ledger("obligation", Obligation, lambda owed: place_of(owed.run_id, owed.number))


class NewObligation(NamedTuple):
    """The changes that register an obligation as part of another request."""

    obligation: Obligation
    cells: tuple[CellChange, ...] = ()
    events: tuple[LedgerEvent, ...] = ()


def key_of(run_id: str, effect_key: str, kind: str, at_once: bool = False) -> str:
    """An effect has one obligation of each kind, and one more, of any kind, if it happened twice."""
    return f"{run_id}/{parts(effect_key)}/{DUPLICATE if at_once else parts(kind)}"


def id_of(run_id: str, effect_key: str, kind: str, at_once: bool = False) -> CellId:
    return OBLIGATIONS.at(key_of(run_id, effect_key, kind, at_once))


def new_obligation(
    snapshot: CellSnapshot,
    run: RunState,
    effect_key: str,
    compensation: Compensation,
    *,
    external_ref: str = "",
    at_once: bool = False,
) -> NewObligation:
    """An obligation of a run; it is due if the run has already failed, and with `at_once` in any case."""
    key = key_of(run.run_id, effect_key, compensation.kind, at_once)
    stored = OBLIGATIONS.find(snapshot, key)
    if stored is not None:
        return NewObligation(stored)
    before = DEBTS.find(snapshot, run.run_id) or Debt()
    obligation = Obligation(
        run_id=run.run_id,
        number=before.count + 1,
        effect_key=effect_key,
        kind=compensation.kind,
        payload_json=compensation.payload_json,
        compensator_ref=compensation.compensator_ref,
        max_attempts=compensation.max_attempts,
        external_ref=external_ref,
        at_once=at_once,
        next_attempt_at_ms=snapshot.now_ms,
        registered_at_ms=snapshot.now_ms,
        app=compensation.app,
    )
    debt = replace(
        before, count=before.count + 1, owed=before.owed + 1, urgent=before.urgent + at_once,
        newest=_server(obligation), newest_urgent=_server(obligation) if at_once else before.newest_urgent,
    )  # fmt: skip
    cells = (_changed(snapshot, obligation), DEBTS.change(snapshot, run.run_id, debt, *debt.index(snapshot.now_ms)))
    return NewObligation(obligation, cells, (_event(obligation, "registered"),))


def register(
    snapshot: CellSnapshot, run_id: RunId, effect_key: str, compensation: Compensation
) -> Transition[Obligation]:
    """Registers an obligation without an effect's outcome."""
    run = find(snapshot, run_id)
    check_acts(run)
    owed, debt = new_obligation(snapshot, run, effect_key, compensation), DEBTS.find(snapshot, run_id) or Debt()
    check_same(owed.obligation, compensation)
    closes = None if debt.is_unwinding else closable(run, debt)
    return Transition(
        result=owed.obligation, cells=owed.cells, events=owed.events, opens=not run.is_active, closes=closes
    )


def check_acts(run: RunState) -> None:
    """Refuses obligations of a fork that suppresses effects."""
    if policy_of(run.labels).suppresses_effects:
        raise UsageError(f"run {run.run_id!r} is a fork that does nothing outside, so there is nothing to undo")


def check_same(stored: Obligation, again: Compensation) -> None:
    """Refuses another compensation than the one that is registered."""
    names = ("kind", "payload_json", "compensator_ref", "max_attempts", "app")
    first, later = ([getattr(each, name) for name in names] for each in (stored, again))
    check_repeat(f"obligation {stored.kind!r} of effect {stored.effect_key!r}", first, later)


def first(snapshot: CellSnapshot, run_id: RunId) -> Obligation | None:
    """The next obligation to compensate: the newest open one that may be compensated now."""
    debt = DEBTS.find(snapshot, run_id) or Debt()
    owed = [each for each in _of(snapshot, run_id) if each.is_owed and (debt.is_unwinding or each.at_once)]
    return owed[0] if owed else None


def claim(
    snapshot: CellSnapshot, run_id: RunId, number: int, owner: str, lease: timedelta, app: str = ANY
) -> Transition[ObligationClaim]:
    """Leases the run's next obligation, if it is due, to a worker of its app; else returns its state."""
    obligation, turn = numbered(snapshot, run_id, number), first(snapshot, run_id)
    if turn != obligation or snapshot.now_ms < obligation.due_at_ms or not serves(app, obligation.app):
        return Transition(result=ObligationClaim(obligation=obligation, is_acquired=False))
    if obligation.attempts >= obligation.max_attempts:  # the last worker's lease has run out
        return _claimed(_settled(snapshot, _failed(obligation, "its last claim ran out", None), "stuck"))
    taken = obligation.claim.taken(owner, lease, snapshot.now_ms)
    attempts = obligation.attempts + 1
    committed = replace(obligation, status=ObligationStatus.COMMITTED, claim=taken, attempts=attempts)
    return _claimed(_settled(snapshot, committed, "claimed"))


def attempt(
    snapshot: CellSnapshot, run_id: RunId, number: int, fence: int, error: str, next_attempt_at_ms: int
) -> Transition[Obligation]:
    """Records a failed attempt: the next one is at a given time; without one, or after the last, it is stuck."""
    obligation = numbered(snapshot, run_id, number)
    is_last = next_attempt_at_ms == 0 or obligation.attempts >= obligation.max_attempts
    failed = _failed(obligation, error, None if is_last else next_attempt_at_ms)
    if failed == obligation and obligation.claim.attempt == fence:
        return Transition(result=obligation)
    obligation.claim.check(f"obligation {number} of run {run_id!r}", fence)
    return _settled(snapshot, failed, "stuck" if is_last else "retried")


def resolve(
    snapshot: CellSnapshot, run_id: RunId, number: int, status: ObligationStatus, result_json: str, fence: int | None
) -> Transition[Obligation]:
    """Ends an obligation, by its holder or by an operator without a claim; a stuck one may still be compensated."""
    if status not in (ObligationStatus.COMPENSATED, ObligationStatus.STUCK):
        raise UsageError(f"an obligation is resolved as compensated or stuck, not {status}")
    obligation = numbered(snapshot, run_id, number)
    if obligation.status in (ObligationStatus.COMPENSATED, status):
        first, again = (obligation.status, obligation.result_json), (status, result_json)
        check_repeat(f"the end of obligation {number} of run {run_id!r}", first, again)
        return Transition(result=obligation)
    if fence is not None:
        obligation.claim.check(f"obligation {number} of run {run_id!r}", fence)
    claim = obligation.claim.released()
    return _settled(snapshot, replace(obligation, status=status, claim=claim, result_json=result_json), "resolved")


def retry(snapshot: CellSnapshot, run_id: RunId, number: int) -> Transition[Obligation]:
    """Makes a stuck obligation pending and due now; its attempts are counted anew."""
    stuck = numbered(snapshot, run_id, number)
    if stuck.status is not ObligationStatus.STUCK:
        return Transition(result=stuck)
    pending = replace(stuck, status=ObligationStatus.PENDING, attempts=0, next_attempt_at_ms=snapshot.now_ms)
    return _settled(snapshot, pending, "retried")


def numbered(snapshot: CellSnapshot, run_id: RunId, number: int) -> Obligation:
    found = next((each for each in _of(snapshot, run_id) if each.number == number), None)
    if found is None:
        raise NotFound(f"run {run_id!r} has no obligation {number}")
    return found


def newest_first(obligations: Sequence[Obligation]) -> list[Obligation]:
    return sorted(obligations, key=lambda each: -each.number)


def _failed(obligation: Obligation, error: str, next_attempt_at_ms: int | None) -> Obligation:
    return replace(
        obligation,
        status=ObligationStatus.STUCK if next_attempt_at_ms is None else ObligationStatus.PENDING,
        claim=obligation.claim.released(),
        last_error=error,
        next_attempt_at_ms=next_attempt_at_ms or 0,
    )


def _claimed(transition: Transition[Obligation]) -> Transition[ObligationClaim]:
    is_acquired = transition.result.status is ObligationStatus.COMMITTED
    return transition.returning(ObligationClaim(obligation=transition.result, is_acquired=is_acquired))


def _of(snapshot: CellSnapshot, run_id: RunId) -> list[Obligation]:
    return newest_first([each for each in OBLIGATIONS.states(snapshot.cells) if each.run_id == run_id])


def _settled(snapshot: CellSnapshot, changed: Obligation, transition: str) -> Transition[Obligation]:
    """The changed obligation, and its run's debt, which is due when the run's next obligation is."""
    run, debt = find(snapshot, changed.run_id), DEBTS.find(snapshot, changed.run_id) or Debt()
    more = changed.is_owed - numbered(snapshot, changed.run_id, changed.number).is_owed
    change = _changed(snapshot, changed)
    after = snapshot._replace(cells={**snapshot.cells, change.id: change.cell})
    owed = [each for each in _of(after, changed.run_id) if each.is_owed]
    debt = replace(
        debt, owed=debt.owed + more, urgent=debt.urgent + more * changed.at_once, newest=_turn(owed),
        newest_urgent=_turn([each for each in owed if each.at_once]),
    )  # fmt: skip
    turn = first(after, changed.run_id)
    due_at_ms = snapshot.now_ms if turn is None else turn.due_at_ms
    cells = (change, DEBTS.change(snapshot, changed.run_id, debt, *debt.index(due_at_ms)))
    events = (_event(changed, transition),)
    return Transition(result=changed, cells=cells, events=events, opens=not run.is_active, closes=closable(run, debt))


def _server(obligation: Obligation) -> tuple[str, str]:
    """Which workers may serve it: its app, and its compensator."""
    return obligation.app, obligation.compensator


def _turn(owed: Sequence[Obligation]) -> tuple[str, str]:
    return _server(owed[0]) if owed else ("", "")


def _changed(snapshot: CellSnapshot, obligation: Obligation) -> CellChange:
    """A stuck obligation is listed by the time it got stuck; the others are found through their run's debt."""
    key = key_of(obligation.run_id, obligation.effect_key, obligation.kind, obligation.at_once)
    is_stuck = obligation.status is ObligationStatus.STUCK
    return OBLIGATIONS.change(snapshot, key, obligation, obligation.status, snapshot.now_ms if is_stuck else None)


def _event(obligation: Obligation, transition: str) -> LedgerEvent:
    verb = transition if transition == "registered" else obligation.status.value
    payload: dict[str, JsonValue] = {
        "effect_key": obligation.effect_key,
        "kind": obligation.kind,
        "status": obligation.status.value,
        "transition": transition,
        "obligation_seq": obligation.number,
        "attempts": obligation.attempts,
        "app": obligation.app,
        "compensator": obligation.compensator,
    }
    if obligation.claim.owner:
        payload["claimer"] = obligation.claim.owner
    if obligation.last_error:
        payload["error"] = obligation.last_error
    dims = (obligation.kind, obligation.run_id)
    return LedgerEvent(run_id=obligation.run_id, kind="obligation", verb=verb, dims=dims, payload=payload)

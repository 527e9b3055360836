"""Obligations, decided: registered with what they undo, met newest first, and never for a run that is well."""

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
from tape.core.ports import Sight
from tape.core.run_state import RunState
from tape.core.sequence import CellChange, CellId
from tape.runs.ledger import Ledger, Line, Step, part
from tape.runs.lifecycle import DEBTS, Debt, closable, find

OBLIGATIONS: Final = Ledger("obligation", Obligation)


class Owed(NamedTuple):
    """A change that registers an obligation, as a part of somebody's request."""

    obligation: Obligation
    cells: tuple[CellChange, ...] = ()
    lines: tuple[Line, ...] = ()


def key_of(run_id: str, effect_key: str, kind: str) -> str:
    return f"{run_id}/{part(f'{effect_key} {kind}')}"


def ids_of(run_id: str, effect_key: str, kind: str) -> tuple[CellId, ...]:
    return DEBTS.at(run_id), OBLIGATIONS.at(key_of(run_id, effect_key, kind))


def owe(
    sight: Sight,
    run: RunState,
    effect_key: str,
    compensation: Compensation,
    *,
    external_ref: str = "",
    at_once: bool = False,
) -> Owed:
    """An obligation of a run, one for each effect and kind; if the run has failed already, it is due at once."""
    key = key_of(run.run_id, effect_key, compensation.kind)
    stored = OBLIGATIONS.find(sight, key)
    if stored is not None:
        return Owed(stored)
    before = DEBTS.find(sight, run.run_id) or Debt()
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
        next_attempt_at_ms=sight.now_ms,
        registered_at_ms=sight.now_ms,
        app=compensation.app,
    )
    debt = replace(
        before, count=before.count + 1, owed=before.owed + 1, urgent=before.urgent + at_once,
        newest=_server(obligation), newest_urgent=_server(obligation) if at_once else before.newest_urgent,
    )  # fmt: skip
    cells = (_changed(sight, obligation), DEBTS.change(sight, run.run_id, debt, *debt.index(sight.now_ms)))
    return Owed(obligation, cells, (_line(obligation, "registered"),))


def register(sight: Sight, run_id: RunId, effect_key: str, compensation: Compensation) -> Step[Obligation]:
    """An obligation that is registered by itself."""
    run = find(sight, run_id)
    if policy_of(run.labels).is_sheltered:
        raise UsageError(f"run {run_id!r} is a fork that does nothing outside, so there is nothing to undo")
    owed, debt = owe(sight, run, effect_key, compensation), DEBTS.find(sight, run_id) or Debt()
    closes = None if debt.is_unwinding else closable(run, debt)
    return Step(result=owed.obligation, cells=owed.cells, lines=owed.lines, opens=not run.is_active, closes=closes)


def first(sight: Sight, run_id: RunId) -> Obligation | None:
    """The one whose turn it is: the newest of those that are owed and may be met."""
    debt = DEBTS.find(sight, run_id) or Debt()
    owed = [each for each in _of(sight, run_id) if each.is_owed and (debt.is_unwinding or each.at_once)]
    return owed[0] if owed else None


def claim(
    sight: Sight, run_id: RunId, number: int, owner: str, lease: timedelta, app: str = ANY
) -> Step[ObligationClaim]:
    """Leases an obligation whose turn and time it is to a worker of its app; who does not get it sees how it stands."""
    obligation, turn = numbered(sight, run_id, number), first(sight, run_id)
    if turn != obligation or sight.now_ms < obligation.due_at_ms or not serves(app, obligation.app):
        return Step(result=ObligationClaim(obligation=obligation, is_acquired=False))
    if obligation.attempts >= obligation.max_attempts:  # whoever claimed it last never came back
        return _claimed(_settled(sight, _failed(obligation, "its last claim ran out", None), "stuck"))
    taken = obligation.claim.taken(owner, lease, sight.now_ms)
    attempts = obligation.attempts + 1
    committed = replace(obligation, status=ObligationStatus.COMMITTED, claim=taken, attempts=attempts)
    return _claimed(_settled(sight, committed, "claimed"))


def attempt(
    sight: Sight, run_id: RunId, number: int, fence: int, error: str, next_attempt_at_ms: int
) -> Step[Obligation]:
    """A failed attempt: it is tried again at a time; without one, or after the last, it is stuck."""
    obligation = numbered(sight, run_id, number)
    if not obligation.is_owed:
        return Step(result=obligation)
    obligation.claim.check(f"obligation {number} of run {run_id!r}", fence)
    is_last = next_attempt_at_ms == 0 or obligation.attempts >= obligation.max_attempts
    failed = _failed(obligation, error, None if is_last else next_attempt_at_ms)
    return _settled(sight, failed, "stuck" if is_last else "retried")


def resolve(
    sight: Sight, run_id: RunId, number: int, status: ObligationStatus, result_json: str, fence: int | None
) -> Step[Obligation]:
    """The end of an obligation, told by its holder, or by a person without a claim; stuck ones may still be met."""
    if status not in (ObligationStatus.COMPENSATED, ObligationStatus.STUCK):
        raise UsageError(f"an obligation is resolved as compensated or stuck, not {status}")
    obligation = numbered(sight, run_id, number)
    if obligation.status in (ObligationStatus.COMPENSATED, status):
        return Step(result=obligation)
    if fence is not None:
        obligation.claim.check(f"obligation {number} of run {run_id!r}", fence)
    claim = obligation.claim.released()
    return _settled(sight, replace(obligation, status=status, claim=claim, result_json=result_json), "resolved")


def numbered(sight: Sight, run_id: RunId, number: int) -> Obligation:
    found = next((each for each in _of(sight, run_id) if each.number == number), None)
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


def _claimed(step: Step[Obligation]) -> Step[ObligationClaim]:
    is_acquired = step.result.status is ObligationStatus.COMMITTED
    result = ObligationClaim(obligation=step.result, is_acquired=is_acquired)
    return Step(result=result, cells=step.cells, lines=step.lines, opens=step.opens, closes=step.closes)


def _of(sight: Sight, run_id: RunId) -> list[Obligation]:
    return newest_first([each for each in OBLIGATIONS.states(sight.cells) if each.run_id == run_id])


def _settled(sight: Sight, changed: Obligation, transition: str) -> Step[Obligation]:
    """The obligation as it is now, and the run's debt, which is due when the next of its obligations is."""
    run, debt = find(sight, changed.run_id), DEBTS.find(sight, changed.run_id) or Debt()
    was_owed = numbered(sight, changed.run_id, changed.number).is_owed
    paid = was_owed and not changed.is_owed
    change = _changed(sight, changed)
    after = sight._replace(cells={**sight.cells, change.id: change.cell})
    owed = [each for each in _of(after, changed.run_id) if each.is_owed]
    debt = replace(
        debt, owed=debt.owed - paid, urgent=debt.urgent - (paid and changed.at_once), newest=_turn(owed),
        newest_urgent=_turn([each for each in owed if each.at_once]),
    )  # fmt: skip
    turn = first(after, changed.run_id)
    due_at_ms = sight.now_ms if turn is None else turn.due_at_ms
    cells = (change, DEBTS.change(sight, changed.run_id, debt, *debt.index(due_at_ms)))
    lines = (_line(changed, transition),)
    return Step(result=changed, cells=cells, lines=lines, opens=not run.is_active, closes=closable(run, debt))


def _server(obligation: Obligation) -> tuple[str, str]:
    """Who may serve it: its app, with the compensator that it names."""
    return obligation.app, obligation.compensator


def _turn(owed: Sequence[Obligation]) -> tuple[str, str]:
    return _server(owed[0]) if owed else ("", "")


def _changed(sight: Sight, obligation: Obligation) -> CellChange:
    """Stuck ones are listed by the time they got stuck; the others by their run's debt."""
    key = key_of(obligation.run_id, obligation.effect_key, obligation.kind)
    is_stuck = obligation.status is ObligationStatus.STUCK
    return OBLIGATIONS.change(sight, key, obligation, obligation.status, sight.now_ms if is_stuck else None)


def _line(obligation: Obligation, transition: str) -> Line:
    verb = transition if transition == "registered" else obligation.status.value
    said: dict[str, JsonValue] = {
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
        said["claimer"] = obligation.claim.owner
    if obligation.last_error:
        said["error"] = obligation.last_error
    dims = (obligation.kind, obligation.run_id)
    return Line(run_id=obligation.run_id, kind="obligation", verb=verb, dims=dims, payload=said)

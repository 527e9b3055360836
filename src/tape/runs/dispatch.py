"""Effects that dispatchers carry out: each is held by one at a time, and in doubt when that one's lease ends."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Final

from tape.core.app import ANY, serves
from tape.core.caller import PLAIN, Caller
from tape.core.codec import JsonValue
from tape.core.effect import (
    Compensation,
    DispatchMode,
    Effect,
    EffectClaim,
    EffectStatus,
    Observation,
    Resolution,
    Semantics,
)
from tape.core.errors import NotReady, UsageError
from tape.core.event import check_run_id
from tape.core.page import fit_answer
from tape.core.ports import CellSnapshot
from tape.core.run_state import ACTIVE, RunStatus
from tape.core.text import check_name
from tape.operations.effects import (
    ClaimEffectDispatch,
    DoubtSilentDispatches,
    ListEffectsToDispatch,
    RecordDispatchAttempt,
    RecordExternalObservation,
    RetryEffect,
)
from tape.runs.compensation import check_acts, check_same, id_of as obligation_id, new_obligation
from tape.runs.effects import (
    EFFECTS,
    IN_FLIGHT,
    OUTBOX,
    EffectId,
    change_effect,
    changed,
    event_of,
    found,
    id_of,
    key_of,
    settled,
)
from tape.runs.ledger import LedgerEvent, Transition, check_repeat, work_filter
from tape.runs.ledger_store import LedgerStore
from tape.runs.lifecycle import find

SILENT: Final = "the dispatcher fell silent"
BODIES: Final = ("response_json", "error_json")
TEXTS: Final = (*BODIES, "external_ref")


def claim(
    snapshot: CellSnapshot, effect_id: EffectId, owner: str, lease: timedelta, app: str = ANY
) -> Transition[EffectClaim]:
    """Leases an effect to one dispatcher. A non-idempotent one is offered once: after a lost lease it is in doubt."""
    effect = found(snapshot, effect_id)
    if effect.dispatch_mode is not DispatchMode.OUTBOX:
        raise UsageError(f"effect {effect.idempotency_key!r} is done inline, so it cannot be dispatched")
    if effect.status is not EffectStatus.PENDING or _is_taken(effect, snapshot.now_ms) or not serves(app, effect.app):
        return Transition(result=EffectClaim(effect=effect, is_acquired=False))
    if effect.claim.owner and effect.semantics is Semantics.NON_IDEMPOTENT:
        return _claimed(mark_in_doubt(snapshot, effect_id), is_acquired=False)
    run = find(snapshot, effect.run_id)
    if run.status not in (*ACTIVE, RunStatus.TERMINAL):
        return _claimed(_given_up(snapshot, effect), is_acquired=False)
    taken = replace(effect, claim=effect.claim.taken(owner, lease, snapshot.now_ms))
    events = (_event(taken, "claimed", "claimed"),)
    transition = Transition(result=taken, cells=(changed(snapshot, taken),), events=events, opens=not run.is_active)
    return _claimed(transition, is_acquired=True)


def attempt(
    snapshot: CellSnapshot, effect_id: EffectId, fence: int, error: str, next_dispatch_at_ms: int
) -> Transition[Effect]:
    """Records a failed dispatch: the effect is due again at a given time; without one its outcome is unknown."""
    effect = found(snapshot, effect_id)
    is_over = not effect.claim.owner and effect.claim.attempt == fence
    if is_over and (effect.last_dispatch_error, effect.next_dispatch_at_ms) == (error, next_dispatch_at_ms):
        return Transition(result=effect)
    effect.claim.check(f"effect {effect.idempotency_key!r}", fence)
    tried = replace(
        effect,
        dispatch_attempts=effect.dispatch_attempts + 1,
        next_dispatch_at_ms=next_dispatch_at_ms,
        last_dispatch_error=error,
        status=EffectStatus.PENDING if next_dispatch_at_ms else EffectStatus.UNKNOWN,
    )
    return settled(snapshot, tried, _event(tried, "attempted", "retried" if next_dispatch_at_ms else ""))


def mark_in_doubt(snapshot: CellSnapshot, effect_id: EffectId) -> Transition[Effect]:
    """Marks a non-idempotent effect whose dispatcher's lease has ended as unknown."""
    effect = found(snapshot, effect_id)
    is_lost = effect.claim.owner and not effect.claim.is_live(snapshot.now_ms)
    if effect.status is not EffectStatus.PENDING or not is_lost or effect.semantics is not Semantics.NON_IDEMPOTENT:
        return Transition(result=effect)
    return attempt(snapshot, effect_id, effect.claim.attempt, SILENT, 0)


def observe(snapshot: CellSnapshot, effect_id: EffectId, seen: Observation) -> Transition[Effect]:
    """Records what a check outside has shown about an effect; a known outcome stays, and another is refused.

    A check that shows no outcome changes nothing while a dispatcher has the effect, who may be doing it.
    """
    effect = found(snapshot, effect_id)
    status = _status_of(seen.resolution, effect)
    if effect.is_settled:
        return _observed_again(snapshot, effect, status, seen)
    if _adds_nothing(effect, status, seen, snapshot.now_ms):
        return Transition(result=effect)
    shown = replace(
        effect,
        status=status,
        external_ref=seen.external_ref or effect.external_ref,
        response_json=seen.response_json,
        error_json=seen.error_json,
        next_dispatch_at_ms=snapshot.now_ms if status is EffectStatus.PENDING else effect.next_dispatch_at_ms,
    )
    return _with_duplicate(snapshot, settled(snapshot, shown, _event(shown, f"observed_{seen.resolution}")), seen)


def _observed_again(
    snapshot: CellSnapshot, effect: Effect, status: EffectStatus, seen: Observation
) -> Transition[Effect]:
    """An effect with a known outcome; that it happened twice may still be new, and how to undo that."""
    if seen.resolution is Resolution.STUCK:  # a doubt contradicts no outcome
        return Transition(result=effect)
    _check_seen(effect, status, seen)
    run = find(snapshot, effect.run_id)
    return _with_duplicate(snapshot, Transition(result=effect, opens=not run.is_active), seen)


def _check_seen(effect: Effect, status: EffectStatus, seen: Observation) -> None:
    """Refuses what contradicts the known outcome; what was not seen contradicts nothing.

    The reference of a duplicate that is to be undone is not that of the effect.
    """
    names = BODIES if _undone(seen) else TEXTS
    pairs = ((getattr(effect, name), getattr(seen, name)) for name in names)
    known = [(stored, again) for stored, again in pairs if stored and again]
    first, later = (effect.status, *(one for one, _ in known)), (status, *(other for _, other in known))
    check_repeat(f"the outcome of effect {effect.idempotency_key!r}", first, later)


def _adds_nothing(effect: Effect, status: EffectStatus, seen: Observation, now_ms: int) -> bool:
    """Whether a check that shows no outcome leaves the effect as it is."""
    if seen.resolution not in (Resolution.ABSENT, Resolution.STUCK):
        return False
    if effect.claim.is_live(now_ms):
        return True
    is_same = all(getattr(seen, name) in ("", getattr(effect, name)) for name in TEXTS)
    return effect.status is status and (is_same or status is EffectStatus.PENDING)


def _undone(seen: Observation) -> Compensation | None:
    """How to undo what happened twice, if it did."""
    return seen.compensate_on_duplicate if seen.resolution is Resolution.DUPLICATE else None


def retry(snapshot: CellSnapshot, effect_id: EffectId) -> Transition[Effect]:
    """Makes an effect in doubt pending and due now, with all its attempts, while somebody would still do it."""
    effect, run = found(snapshot, effect_id), find(snapshot, effect_id[0])
    if effect.status is not EffectStatus.UNKNOWN:
        return Transition(result=effect)
    if effect.semantics is Semantics.NON_IDEMPOTENT:
        raise NotReady(f"effect {effect.idempotency_key!r} must not be repeated; check it and reconcile it")
    if not (run.is_active or (run.status is RunStatus.TERMINAL and effect.dispatch_mode is DispatchMode.OUTBOX)):
        raise NotReady(f"run {run.run_id!r} is {run.status}, so nobody does its effects; reconcile it")
    again = replace(
        effect, status=EffectStatus.PENDING, response_json="", error_json="", dispatch_attempts=0,
        next_dispatch_at_ms=snapshot.now_ms,
    )  # fmt: skip
    return settled(snapshot, again, _event(again, "retried", "retried"))


class Dispatch:
    """Claims and outcomes of effects with dispatch mode `outbox`."""

    def __init__(self, store: LedgerStore) -> None:
        self._store = store

    async def due(self, request: ListEffectsToDispatch, caller: Caller) -> Sequence[Effect]:
        app, connector = request.app, request.connector
        now = await self._store.now_ms(request.now_ms)
        served = work_filter(app, (connector,)) if app and connector else None

        def accepts(effect: Effect) -> bool:
            return connector in ("", effect.connector) and serves(app, effect.app)

        return await self._store.due_states(EFFECTS, OUTBOX, now, request.limit, accepts, served)

    async def claim(self, request: ClaimEffectDispatch, caller: Caller) -> EffectClaim:
        decide = partial(claim, effect_id=id_of(request), owner=request.owner, lease=request.lease, app=request.app)
        return await change_effect(self._store, id_of(request), decide, caller)

    async def attempt(self, request: RecordDispatchAttempt, caller: Caller) -> Effect:
        decide = partial(
            attempt, effect_id=id_of(request), fence=request.attempt or await self._newest(request),
            error=request.error, next_dispatch_at_ms=request.next_dispatch_at_ms,
        )  # fmt: skip
        return await change_effect(self._store, id_of(request), decide, caller)

    async def observe(self, request: RecordExternalObservation, caller: Caller) -> Effect:
        effect_id = check_run_id(request.run_id), check_name("idempotency_key", request.idempotency_key)
        how = _undone(request)
        more = [obligation_id(*effect_id, how.kind, at_once=True)] if how else []
        decide = partial(observe, effect_id=effect_id, seen=request)
        return await change_effect(self._store, effect_id, decide, caller, *more)

    async def retry(self, request: RetryEffect, caller: Caller) -> Effect:
        decide = partial(retry, effect_id=id_of(request))
        return await change_effect(self._store, id_of(request), decide, caller)

    async def mark_lost_in_doubt(self, request: DoubtSilentDispatches, caller: Caller) -> Sequence[Effect]:
        """Marks as many as fit into one answer."""
        now = await self._store.now_ms(request.now_ms)
        cells = await self._store.cells.due(EFFECTS.name, IN_FLIGHT, now, request.limit)
        carried = fit_answer(cells.items(), lambda item: item[1].size)
        lost = list(EFFECTS.states(dict(carried)))
        return [await self._mark_in_doubt((effect.run_id, effect.idempotency_key)) for effect in lost]

    async def _newest(self, request: RecordDispatchAttempt) -> int:
        stored = await self._store.find(EFFECTS, key_of(request.run_id, request.idempotency_key))
        if stored is None:
            raise NotReady(f"effect {request.idempotency_key!r} of run {request.run_id!r} was never begun")
        return stored.claim.attempt

    async def _mark_in_doubt(self, effect_id: EffectId) -> Effect:
        return await change_effect(self._store, effect_id, partial(mark_in_doubt, effect_id=effect_id), PLAIN)


def _is_taken(effect: Effect, now_ms: int) -> bool:
    return effect.claim.is_live(now_ms) or (not effect.claim.owner and now_ms < effect.next_dispatch_at_ms)


def _claimed(transition: Transition[Effect], *, is_acquired: bool) -> Transition[EffectClaim]:
    return transition.returning(EffectClaim(effect=transition.result, is_acquired=is_acquired))


def _status_of(resolution: Resolution, effect: Effect) -> EffectStatus:
    match resolution:
        case Resolution.CONFIRMED | Resolution.DUPLICATE:
            return EffectStatus.CONFIRMED
        case Resolution.FAILED:
            return EffectStatus.FAILED
        case Resolution.ABSENT:
            can_repeat = effect.semantics is not Semantics.NON_IDEMPOTENT
            return EffectStatus.PENDING if can_repeat else EffectStatus.FAILED
        case Resolution.STUCK:
            return EffectStatus.UNKNOWN


def _with_duplicate(snapshot: CellSnapshot, transition: Transition[Effect], seen: Observation) -> Transition[Effect]:
    """An effect that happened twice is undone once, whether or not the run fails."""
    effect, how = transition.result, _undone(seen)
    if how is None:
        return transition
    run, how = find(snapshot, effect.run_id), replace(how, app=how.app or effect.app)
    reference = seen.external_ref or effect.external_ref
    check_acts(run)
    after = snapshot._replace(cells={**snapshot.cells, **{change.id: change.cell for change in transition.cells}})
    owed = new_obligation(after, run, effect.idempotency_key, how, external_ref=reference, at_once=True)
    check_same(owed.obligation, how)
    check_repeat(f"the duplicate of effect {effect.idempotency_key!r}", owed.obligation.external_ref, reference)
    if not owed.cells:
        return transition
    earlier = tuple(change for change in transition.cells if change.id not in {each.id for each in owed.cells})
    versions = {cell_id: cell.version for cell_id, cell in snapshot.cells.items()}
    later = tuple(replace(change, seen=versions.get(change.id, 0)) for change in owed.cells)
    return replace(transition, cells=(*earlier, *later), events=(*transition.events, *owed.events), closes=None)


def _given_up(snapshot: CellSnapshot, effect: Effect) -> Transition[Effect]:
    """Ends an effect whose run has failed; if a dispatcher ever had it, its outcome is unknown."""
    status = EffectStatus.UNKNOWN if effect.claim.attempt else EffectStatus.FAILED
    left = replace(effect, status=status, last_dispatch_error="its run ended before it was done")
    return settled(snapshot, left, _event(left, "given_up"))


def _event(effect: Effect, transition: str, verb: str = "") -> LedgerEvent:
    """The entry of a dispatch, which has more fields than that of an outcome."""
    plain = event_of(effect, verb)
    more: dict[str, JsonValue] = {"transition": transition, "dispatch_attempts": effect.dispatch_attempts}
    if effect.claim.owner:
        more["claimer"] = effect.claim.owner
    if effect.last_dispatch_error:
        more["error"] = effect.last_dispatch_error
    if effect.next_dispatch_at_ms:
        more["next_dispatch_at_ms"] = effect.next_dispatch_at_ms
    if effect.external_ref:
        more["external_ref"] = effect.external_ref
    payload = plain.payload if isinstance(plain.payload, dict) else {}
    return replace(plain, payload={**payload, **more})

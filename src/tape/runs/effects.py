"""The ledger of effects: the intent is recorded before the call, and the outcome once."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, Protocol, TypeAlias, TypeVar

from tape.core.caller import Caller
from tape.core.codec import JsonValue
from tape.core.effect import Compensation, DispatchMode, Effect, EffectSpec, EffectStatus, Semantics
from tape.core.errors import Conflict, NotReady, ScopeDenied, UsageError
from tape.core.event import check_run_id
from tape.core.fork_policy import policy_of
from tape.core.ids import RunId
from tape.core.page import Page
from tape.core.ports import CellSnapshot
from tape.core.run_state import RunState
from tape.core.sequence import CellChange, CellId
from tape.operations.effects import (
    BeginEffect,
    CompleteEffect,
    GetEffect,
    ListEffects,
    ListPendingEffects,
    ReconcileEffect,
)
from tape.runs.compensation import NewObligation, id_of as obligation_id, new_obligation
from tape.runs.ledger import IN_A_LIST, Ledger, LedgerEvent, Transition, ascending, check_repeat, part, parts
from tape.runs.ledger_store import LedgerStore
from tape.runs.lifecycle import (
    COMPACTIONS,
    DEBTS,
    RUNS,
    Debt,
    active,
    changed as run_changed,
    closable,
    fenced,
    find,
    is_compacted,
)

# Status of an effect's cell: OUTBOX waits for a dispatcher; IN_FLIGHT is held by one
# and must not be offered again.
OUTBOX: Final = "outbox"
IN_FLIGHT: Final = "in_flight"

T = TypeVar("T")
EffectId: TypeAlias = tuple[RunId, str]

STATUSES: Final[Mapping[EffectStatus, tuple[str, ...]]] = {
    **{status: (status,) for status in EffectStatus},
    EffectStatus.PENDING: (EffectStatus.PENDING, OUTBOX, IN_FLIGHT),
}


def place_of(effect: Effect) -> str:
    """Effects of a run are listed in the order they began."""
    return f"{effect.run_id}/{ascending(effect.began_at_ms)}/{part(effect.idempotency_key, IN_A_LIST)}"


EFFECTS: Final = Ledger("effect", Effect, place_of)
BUSINESS: Final = Ledger("business", tuple[str, str])


def key_of(run_id: str, idempotency_key: str) -> str:
    return f"{run_id}/{part(idempotency_key)}"


def begin(snapshot: CellSnapshot, spec: EffectSpec, fence: int | None = None) -> Transition[Effect]:
    """Records the intent, unless it exists here or in another run under the business key; checks the run's scopes."""
    stored = EFFECTS.find(snapshot, key_of(spec.run_id, spec.idempotency_key)) or _same_business(snapshot, spec)
    if stored is not None:
        _check_same(snapshot, stored, spec)
        return Transition(result=stored)
    run = active(snapshot, spec.run_id)
    effect = _suppressed(_new(spec, snapshot.now_ms), run)
    if not _is_granted(spec, run):
        error = ScopeDenied(spec.run_id, spec.tool, spec.scope)
        return Transition(result=effect, events=(_denied(spec, run),), error=error)
    # The run's cell is part of the request, so that no intent follows the end of its run.
    cells = [changed(snapshot, effect), *(fenced(snapshot, run, fence) or (run_changed(snapshot, run),))]
    if spec.business_key:
        effect_id = (effect.run_id, effect.idempotency_key)
        cells.append(BUSINESS.change(snapshot, parts(spec.connector, spec.business_key), effect_id, "taken"))
    return Transition(result=effect, cells=tuple(cells), events=(event_of(effect, begins=True),))


def complete(
    snapshot: CellSnapshot,
    effect_id: EffectId,
    status: EffectStatus,
    response_json: str = "",
    error_json: str = "",
    fence: int | None = None,
) -> Transition[Effect]:
    """Records the outcome of a pending effect; one that has an outcome keeps it and refuses another."""
    if status is EffectStatus.PENDING:
        raise UsageError("an effect is completed as confirmed, failed or unknown")
    effect = found(snapshot, effect_id)
    if effect.status is not EffectStatus.PENDING:
        if status is not EffectStatus.UNKNOWN or not effect.is_settled:  # a doubt contradicts no outcome
            check_outcome(snapshot, effect, status, response_json, error_json)
        return Transition(result=effect)
    proof = fenced(snapshot, find(snapshot, effect.run_id), fence)
    done = replace(effect, status=status, response_json=response_json, error_json=error_json)
    transition = settled(snapshot, done, event_of(done))
    return replace(transition, cells=(*transition.cells, *proof))


def reconcile(
    snapshot: CellSnapshot, effect_id: EffectId, status: EffectStatus, response_json: str = "", error_json: str = ""
) -> Transition[Effect]:
    """Records the real outcome of an effect in doubt; a known outcome stays and refuses another."""
    if status not in (EffectStatus.CONFIRMED, EffectStatus.FAILED):
        raise UsageError(f"an effect is reconciled as confirmed or failed, not {status}")
    effect = found(snapshot, effect_id)
    if effect.is_settled:
        check_outcome(snapshot, effect, status, response_json, error_json)
        return Transition(result=effect)
    done = replace(effect, status=status, response_json=response_json, error_json=error_json)
    return settled(snapshot, done, event_of(done, "reconciled"))


def check_outcome(
    snapshot: CellSnapshot, effect: Effect, status: EffectStatus, response_json: str, error_json: str
) -> None:
    """Refuses another outcome than the recorded one; a compacted effect has no bodies to compare."""
    stored = effect.response_json, effect.error_json
    is_deleted = not any(stored) and is_compacted(snapshot, effect.run_id)
    bodies = stored if is_deleted else (response_json, error_json)
    check_repeat(f"the outcome of effect {effect.idempotency_key!r}", (effect.status, stored), (status, bodies))


def found(snapshot: CellSnapshot, effect_id: EffectId) -> Effect:
    effect = EFFECTS.find(snapshot, key_of(*effect_id))
    if effect is None:
        raise NotReady(f"effect {effect_id[1]!r} has not begun; begin it before it is done")
    return effect


def settled(snapshot: CellSnapshot, effect: Effect, event: LedgerEvent) -> Transition[Effect]:
    """An effect after a dispatch or a check; a confirmed one with a compensation adds an obligation."""
    run, debt = find(snapshot, effect.run_id), DEBTS.find(snapshot, effect.run_id) or Debt()
    settled_at_ms = 0 if effect.status is EffectStatus.PENDING else snapshot.now_ms
    effect = replace(effect, claim=effect.claim.released(), settled_at_ms=settled_at_ms)
    owed = _obligation(snapshot, run, effect)
    cells = changed(snapshot, effect), *(owed.cells if owed else ())
    events = event, *(owed.events if owed else ())
    closes = None if owed and debt.is_unwinding else closable(run, debt)
    return Transition(result=effect, cells=cells, events=events, opens=not run.is_active, closes=closes)


def changed(snapshot: CellSnapshot, effect: Effect) -> CellChange:
    effect.check_texts()
    is_listed_by_connector = effect.connector or effect.dispatch_mode is DispatchMode.OUTBOX
    served_by = (effect.app, effect.connector) if is_listed_by_connector else None
    return EFFECTS.change(snapshot, key_of(effect.run_id, effect.idempotency_key), effect, *_index(effect), served_by)


def event_of(effect: Effect, verb: str = "", begins: bool = False) -> LedgerEvent:
    payload: dict[str, JsonValue] = {
        "tool": effect.tool,
        "idempotency_key": effect.idempotency_key,
        "status": effect.status.value,
    }
    if begins:
        payload |= {
            "decision_index": effect.decision_index,
            "semantics": effect.semantics.value,
            "dispatch_mode": effect.dispatch_mode.value,
            "business_key": effect.business_key,
            "connector": effect.connector,
            "scope": effect.scope,
            "app": effect.app,
        }
    dims = (effect.tool, effect.run_id)
    return LedgerEvent(
        run_id=effect.run_id, kind="effect", verb=verb or effect.status.value, dims=dims, payload=payload
    )


class Effects:
    def __init__(self, store: LedgerStore) -> None:
        self._store = store

    async def begin(self, request: BeginEffect, caller: Caller) -> Effect:
        check_run_id(request.run_id)
        decide = partial(begin, spec=request, fence=request.fence)
        return await self._store.change_from(lambda: self._snapshot(request), decide, caller)

    async def complete(self, request: CompleteEffect, caller: Caller) -> Effect:
        decide = partial(
            complete, effect_id=id_of(request), status=request.status, response_json=request.response_json,
            error_json=request.error_json, fence=request.fence,
        )  # fmt: skip
        return await change_effect(self._store, id_of(request), decide, caller)

    async def reconcile(self, request: ReconcileEffect, caller: Caller) -> Effect:
        decide = partial(
            reconcile, effect_id=id_of(request), status=request.status, response_json=request.response_json,
            error_json=request.error_json,
        )  # fmt: skip
        return await change_effect(self._store, id_of(request), decide, caller)

    async def get(self, request: GetEffect, caller: Caller) -> Effect | None:
        return await self._store.find(EFFECTS, key_of(request.run_id, request.idempotency_key))

    async def listed(self, request: ListEffects, caller: Caller) -> Page[Effect]:
        wanted = EffectStatus if request.status is None else (request.status,)
        statuses = [each for status in wanted for each in STATUSES[status]]
        connector = part(request.connector) if request.connector else ""
        return await self._store.page(EFFECTS, request, statuses, request.run_id, connector)

    async def pending(self, request: ListPendingEffects, caller: Caller) -> Sequence[Effect]:
        now = await self._store.now_ms()
        wanted = {EffectStatus.UNKNOWN: request.include_unknown, EffectStatus.PENDING: request.include_pending}
        until = {EffectStatus.UNKNOWN: now, EffectStatus.PENDING: now - request.older_than_ms}
        pages = [
            await self._store.cells.due(EFFECTS.name, status, until_ms, request.limit)
            for status, until_ms in until.items()
            if wanted[status] or not any(wanted.values())
        ]
        return [effect for page in pages for effect in EFFECTS.states(page)][: request.limit]

    async def _snapshot(self, spec: EffectSpec) -> CellSnapshot:
        run_id, business = spec.run_id, parts(spec.connector, spec.business_key)
        ids = [RUNS.at(run_id), COMPACTIONS.at(run_id), EFFECTS.at(key_of(run_id, spec.idempotency_key))]
        snapshot = await self._store.cells.snapshot([*ids, *([BUSINESS.at(business)] if spec.business_key else [])])
        other = BUSINESS.find(snapshot, business)
        if other is None:
            return snapshot
        ids = [EFFECTS.at(key_of(*other)), COMPACTIONS.at(other[0])]
        return snapshot._replace(cells={**snapshot.cells, **await self._store.cells.read(ids)})


class OfEffect(Protocol):
    """A request that names an effect."""

    @property
    def run_id(self) -> str: ...
    @property
    def idempotency_key(self) -> str: ...


def id_of(request: OfEffect) -> EffectId:
    return RunId(request.run_id), request.idempotency_key


async def change_effect(
    store: LedgerStore,
    effect_id: EffectId,
    decide: Callable[[CellSnapshot], Transition[T]],
    caller: Caller,
    *more: CellId,
) -> T:
    """Decides on an effect, its run, the obligation it may add, and more cells."""
    return await store.change_from(partial(read_snapshot, store, effect_id, *more), decide, caller)


async def read_snapshot(store: LedgerStore, effect_id: EffectId, *more: CellId) -> CellSnapshot:
    """An effect, its run, the obligation it may add, and more cells."""
    run_id, key = effect_id
    ids = RUNS.at(run_id), DEBTS.at(run_id), COMPACTIONS.at(run_id), EFFECTS.at(key_of(*effect_id))
    snapshot = await store.cells.snapshot(ids)
    effect = EFFECTS.find(snapshot, key_of(*effect_id))
    if effect is not None and effect.compensation is not None:
        more = *more, obligation_id(run_id, key, effect.compensation.kind)
    return snapshot._replace(cells={**snapshot.cells, **await store.cells.read(more)}) if more else snapshot


def _same_business(snapshot: CellSnapshot, spec: EffectSpec) -> Effect | None:
    other = BUSINESS.find(snapshot, parts(spec.connector, spec.business_key))
    return None if other is None or not spec.business_key else EFFECTS.find(snapshot, key_of(*other))


def _check_same(snapshot: CellSnapshot, stored: Effect, spec: EffectSpec) -> None:
    """Refuses another request under the key of an effect, except in forks, where effects are not executed.

    The decision that it follows may differ: the key says which effect it is.
    """
    if policy_of(find(snapshot, spec.run_id).labels).suppresses_effects:
        return
    is_deleted = not stored.request_json and is_compacted(snapshot, stored.run_id)
    first, again = (stored.tool, stored.request_json), (spec.tool, "" if is_deleted else spec.request_json)
    is_own = (stored.run_id, stored.idempotency_key) == (spec.run_id, spec.idempotency_key)
    if is_own and first != again:
        raise Conflict(
            f"run {spec.run_id!r} asks for another {stored.tool!r} than the first time: effect "
            f"{spec.idempotency_key!r} was begun with another request, which stays"
        )
    check_repeat(f"business_key {spec.business_key!r} of connector {spec.connector!r}", first, again)
    if is_own and not stored.is_settled:
        _check_same_way(stored, spec)


def _check_same_way(stored: Effect, spec: EffectSpec) -> None:
    """Refuses to do an effect in another way than it was begun; with an outcome, the way no longer matters.

    A repetition without a compensation leaves the first one.
    """
    compensation = _owned(spec.compensation, spec.app) or stored.compensation
    for name in ("dispatch_mode", "semantics", "connector", "scope", "app", "business_key", "compensation"):
        again = compensation if name == "compensation" else getattr(spec, name)
        check_repeat(f"the {name} of effect {stored.idempotency_key!r}", getattr(stored, name), again)


def _new(spec: EffectSpec, now_ms: int) -> Effect:
    return Effect(
        run_id=spec.run_id,
        idempotency_key=spec.idempotency_key,
        tool=spec.tool,
        status=EffectStatus.PENDING,
        decision_index=spec.decision_index,
        request_json=spec.request_json,
        semantics=spec.semantics,
        dispatch_mode=spec.dispatch_mode,
        business_key=spec.business_key,
        connector=spec.connector,
        scope=spec.scope,
        compensation=_owned(spec.compensation, spec.app),
        app=spec.app,
        began_at_ms=now_ms,
        next_dispatch_at_ms=now_ms,
    )


def _owned(compensation: Compensation | None, app: str) -> Compensation | None:
    """A compensation belongs to the effect's app, unless it names another."""
    if compensation is None or compensation.app:
        return compensation
    return replace(compensation, app=app)


def _suppressed(effect: Effect, run: RunState) -> Effect:
    """In a fork that suppresses effects nothing is dispatched and nothing is undone."""
    if not policy_of(run.labels).suppresses_effects:
        return effect
    if effect.dispatch_mode is DispatchMode.OUTBOX:
        raise UsageError(f"run {run.run_id!r} is a fork that does nothing outside, so it has no outbox")
    return replace(effect, compensation=None)


def _is_granted(spec: EffectSpec, run: RunState) -> bool:
    if not spec.scope:
        return spec.semantics is not Semantics.NON_IDEMPOTENT
    return spec.scope in run.scopes


def _denied(spec: EffectSpec, run: RunState) -> LedgerEvent:
    payload: dict[str, JsonValue] = {
        "tool": spec.tool,
        "decision_index": spec.decision_index,
        "required_scope": spec.scope,
        "granted_scopes": list(run.scopes),
        "violation": "scope_missing" if spec.scope else "scope_required",
    }
    return LedgerEvent(run_id=run.run_id, kind="policy", verb="denied", dims=(spec.tool, run.run_id), payload=payload)


def _obligation(snapshot: CellSnapshot, run: RunState, effect: Effect) -> NewObligation | None:
    if effect.status is not EffectStatus.CONFIRMED or effect.compensation is None:
        return None
    return new_obligation(snapshot, run, effect.idempotency_key, effect.compensation, external_ref=effect.external_ref)


def _index(effect: Effect) -> tuple[str, int | None]:
    if effect.status is EffectStatus.UNKNOWN:
        return effect.status, effect.settled_at_ms
    if effect.is_settled:
        return effect.status, None
    if effect.dispatch_mode is DispatchMode.INLINE:
        return effect.status, effect.began_at_ms
    if not effect.claim.owner:
        return OUTBOX, effect.next_dispatch_at_ms
    word = IN_FLIGHT if effect.semantics is Semantics.NON_IDEMPOTENT else OUTBOX
    return word, effect.claim.expires_at_ms

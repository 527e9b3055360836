"""The ledger of effects: the intent is written before the act, and the outcome once."""

from collections.abc import Collection
from dataclasses import replace
from functools import partial
from typing import Final, TypeAlias

from tape.core.caller import PLAIN, Caller
from tape.core.codec import JsonValue
from tape.core.effect import IN_DOUBT, Compensation, DispatchMode, Effect, EffectOrder, EffectStatus, Semantics
from tape.core.errors import NotReady, ScopeDenied, UsageError
from tape.core.event import check_run_id
from tape.core.fork_policy import policy_of
from tape.core.ids import RunId
from tape.core.ports import Sight
from tape.core.run_state import RunState
from tape.core.sequence import CellChange
from tape.core.text import check_body, check_count, check_name
from tape.runs.compensation import Owed, ids_of, owe
from tape.runs.desk import Desk
from tape.runs.ledger import Ledger, Line, Step, part, parts
from tape.runs.lifecycle import DEBTS, RUNS, Debt, active, changed as run_changed, closable, find, proven

# What an effect's cell is listed under beside its status: one that waits for a dispatcher, and one that a dispatcher
# has and that must not be offered again.
OUTBOX: Final = "outbox"
IN_FLIGHT: Final = "in_flight"
LIMIT: Final = 200

Place: TypeAlias = tuple[RunId, str]

EFFECTS: Final = Ledger("effect", Effect)
BUSINESS: Final = Ledger("business", tuple[str, str])


def key_of(run_id: str, idempotency_key: str) -> str:
    return f"{run_id}/{part(idempotency_key)}"


def begin(sight: Sight, order: EffectOrder, fence: int | None = None) -> Step[Effect]:
    """The intent, unless it or another run's of the same business key is there; what the run may not do is refused."""
    stored = EFFECTS.find(sight, key_of(order.run_id, order.idempotency_key)) or _same_business(sight, order)
    if stored is not None:
        return Step(result=stored)
    run = active(sight, order.run_id)
    effect = _sheltered(_new(order, sight.now_ms), run)
    if not _is_granted(order, run):
        error = ScopeDenied(order.run_id, order.tool, order.scope)
        return Step(result=effect, lines=(_denied(order, run),), error=error)
    # The run's cell is part of the request, so that no intent follows the end of its run.
    cells = [changed(sight, effect), *(proven(sight, run, fence) or (run_changed(sight, run),))]
    if order.business_key:
        place = (effect.run_id, effect.idempotency_key)
        cells.append(BUSINESS.change(sight, parts(order.connector, order.business_key), place, "taken"))
    return Step(result=effect, cells=tuple(cells), lines=(line(effect, begins=True),))


def complete(
    sight: Sight,
    place: Place,
    status: EffectStatus,
    response_json: str = "",
    error_json: str = "",
    fence: int | None = None,
) -> Step[Effect]:
    """What came of an effect that is pending; any other stays as it is."""
    if status is EffectStatus.PENDING:
        raise UsageError("an effect is completed as confirmed, failed or unknown")
    effect = found(sight, place)
    if effect.status is not EffectStatus.PENDING:
        return Step(result=effect)
    proof = proven(sight, find(sight, effect.run_id), fence)
    done = replace(effect, status=status, response_json=response_json, error_json=error_json)
    step = settled(sight, done, line(done))
    return replace(step, cells=(*step.cells, *proof))


def reconcile(
    sight: Sight, place: Place, status: EffectStatus, response_json: str = "", error_json: str = ""
) -> Step[Effect]:
    """What an effect that was in doubt turned out to be; a known outcome stays."""
    if status not in (EffectStatus.CONFIRMED, EffectStatus.FAILED):
        raise UsageError(f"an effect is reconciled as confirmed or failed, not {status}")
    effect = found(sight, place)
    if effect.is_settled:
        return Step(result=effect)
    done = replace(effect, status=status, response_json=response_json, error_json=error_json)
    return settled(sight, done, line(done, "reconciled"))


def found(sight: Sight, place: Place) -> Effect:
    effect = EFFECTS.find(sight, key_of(*place))
    if effect is None:
        raise NotReady(f"effect {place[1]!r} has not begun; begin it before it is done")
    return effect


def settled(sight: Sight, effect: Effect, said: Line) -> Step[Effect]:
    """An effect after a dispatch or a look outside; a confirmed one that can be undone becomes an obligation."""
    run, debt = find(sight, effect.run_id), DEBTS.find(sight, effect.run_id) or Debt()
    settled_at_ms = 0 if effect.status is EffectStatus.PENDING else sight.now_ms
    effect = replace(effect, claim=effect.claim.released(), settled_at_ms=settled_at_ms)
    owed = _obligation(sight, run, effect)
    cells = changed(sight, effect), *(owed.cells if owed else ())
    lines = said, *(owed.lines if owed else ())
    closes = None if owed and debt.is_unwinding else closable(run, debt)
    return Step(result=effect, cells=cells, lines=lines, opens=not run.is_active, closes=closes)


def changed(sight: Sight, effect: Effect) -> CellChange:
    served_by = (effect.app, effect.connector) if effect.dispatch_mode is DispatchMode.OUTBOX else None
    return EFFECTS.change(sight, key_of(effect.run_id, effect.idempotency_key), effect, *_index(effect), served_by)


def line(effect: Effect, verb: str = "", begins: bool = False) -> Line:
    said: dict[str, JsonValue] = {
        "tool": effect.tool,
        "idempotency_key": effect.idempotency_key,
        "status": effect.status.value,
    }
    if begins:
        said |= {
            "decision_index": effect.decision_index,
            "semantics": effect.semantics.value,
            "dispatch_mode": effect.dispatch_mode.value,
            "business_key": effect.business_key,
            "connector": effect.connector,
            "scope": effect.scope,
            "app": effect.app,
        }
    dims = (effect.tool, effect.run_id)
    return Line(run_id=effect.run_id, kind="effect", verb=verb or effect.status.value, dims=dims, payload=said)


class Effects:
    """What runs do to the world outside."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def begin(self, order: EffectOrder, fence: int | None = None, caller: Caller = PLAIN) -> Effect:
        """The stored effect: pending if it is new, and whatever it has become if it is not."""
        check_run_id(order.run_id)
        return await self._desk.settle(lambda: self._sight(order), partial(begin, order=order, fence=fence), caller)

    async def complete(
        self,
        run_id: str,
        idempotency_key: str,
        status: EffectStatus,
        response_json: str = "",
        error_json: str = "",
        fence: int | None = None,
        caller: Caller = PLAIN,
    ) -> Effect:
        """Writes what came of a pending effect down; it is too late for one that has an outcome."""
        place = check_run_id(run_id), check_name("idempotency_key", idempotency_key)
        bodies = check_body("response_json", response_json), check_body("error_json", error_json)
        return await self._desk.settle(
            partial(sighted, self._desk, place), lambda sight: complete(sight, place, status, *bodies, fence), caller
        )

    async def reconcile(
        self,
        run_id: str,
        idempotency_key: str,
        status: EffectStatus,
        response_json: str = "",
        error_json: str = "",
        caller: Caller = PLAIN,
    ) -> Effect:
        """Says what an effect in doubt turned out to be."""
        place = check_run_id(run_id), check_name("idempotency_key", idempotency_key)
        bodies = check_body("response_json", response_json), check_body("error_json", error_json)
        return await self._desk.settle(
            partial(sighted, self._desk, place), lambda sight: reconcile(sight, place, status, *bodies), caller
        )

    async def find(self, run_id: str, idempotency_key: str) -> Effect | None:
        key = key_of(check_run_id(run_id), idempotency_key)
        return EFFECTS.find(await self._desk.cells.look((EFFECTS.at(key),)), key)

    async def listed(self, run_id: str) -> list[Effect]:
        """All of a run, in the order they began."""
        found = EFFECTS.states(await self._desk.under(EFFECTS.name, check_run_id(run_id)))
        return sorted(found, key=lambda effect: (effect.began_at_ms, effect.idempotency_key))

    async def in_doubt(
        self, older_than_ms: int = 0, limit: int = LIMIT, among: Collection[EffectStatus] = IN_DOUBT
    ) -> list[Effect]:
        """Effects that somebody should look at: unknown, or pending inline for longer than so."""
        now, age_ms = await self._desk.now_ms(), check_count("older_than_ms", older_than_ms)
        until = {EffectStatus.UNKNOWN: now, EffectStatus.PENDING: now - age_ms}
        pages = [
            await self._desk.cells.due(EFFECTS.name, status, until_ms, limit)
            for status, until_ms in until.items()
            if status in among
        ]
        return [effect for page in pages for effect in EFFECTS.states(page)][:limit]

    async def _sight(self, order: EffectOrder) -> Sight:
        key = EFFECTS.at(key_of(order.run_id, order.idempotency_key))
        business = parts(order.connector, order.business_key)
        ids = [RUNS.at(order.run_id), key, *([BUSINESS.at(business)] if order.business_key else [])]
        sight = await self._desk.cells.look(ids)
        other = BUSINESS.find(sight, business)
        if other is None:
            return sight
        return sight._replace(cells={**sight.cells, **await self._desk.cells.read([EFFECTS.at(key_of(*other))])})


async def sighted(desk: Desk, place: Place, *kinds: str) -> Sight:
    """An effect, its run, and what it may owe."""
    run_id, key = place
    sight = await desk.cells.look((RUNS.at(run_id), DEBTS.at(run_id), EFFECTS.at(key_of(*place))))
    effect = EFFECTS.find(sight, key_of(*place))
    if effect is not None and effect.compensation is not None:
        kinds = (*kinds, effect.compensation.kind)
    ids = [owed for kind in kinds for owed in ids_of(run_id, key, kind) if owed.ledger != DEBTS.name]
    return sight._replace(cells={**sight.cells, **await desk.cells.read(ids)}) if ids else sight


def _same_business(sight: Sight, order: EffectOrder) -> Effect | None:
    other = BUSINESS.find(sight, parts(order.connector, order.business_key))
    return None if other is None or not order.business_key else EFFECTS.find(sight, key_of(*other))


def _new(order: EffectOrder, now_ms: int) -> Effect:
    return Effect(
        run_id=order.run_id,
        idempotency_key=order.idempotency_key,
        tool=order.tool,
        status=EffectStatus.PENDING,
        decision_index=order.decision_index,
        request_json=order.request_json,
        semantics=order.semantics,
        dispatch_mode=order.dispatch_mode,
        business_key=order.business_key,
        connector=order.connector,
        scope=order.scope,
        compensation=_owned(order.compensation, order.app),
        app=order.app,
        began_at_ms=now_ms,
        next_dispatch_at_ms=now_ms,
    )


def _owned(compensation: Compensation | None, app: str) -> Compensation | None:
    """What undoes an effect belongs to the app that begins it, unless it names another."""
    if compensation is None or compensation.app:
        return compensation
    return replace(compensation, app=app)


def _sheltered(effect: Effect, run: RunState) -> Effect:
    """In a fork that nothing outside may notice, nobody is asked to do anything, and nothing is to be undone."""
    if not policy_of(run.labels).is_sheltered:
        return effect
    if effect.dispatch_mode is DispatchMode.OUTBOX:
        raise UsageError(f"run {run.run_id!r} is a fork that does nothing outside, so it has no outbox")
    return replace(effect, compensation=None)


def _is_granted(order: EffectOrder, run: RunState) -> bool:
    if not order.scope:
        return order.semantics is not Semantics.NON_IDEMPOTENT
    return order.scope in run.scopes


def _denied(order: EffectOrder, run: RunState) -> Line:
    said: dict[str, JsonValue] = {
        "tool": order.tool,
        "decision_index": order.decision_index,
        "required_scope": order.scope,
        "granted_scopes": list(run.scopes),
        "violation": "scope_missing" if order.scope else "scope_required",
    }
    return Line(run_id=run.run_id, kind="policy", verb="denied", dims=(order.tool, run.run_id), payload=said)


def _obligation(sight: Sight, run: RunState, effect: Effect) -> Owed | None:
    if effect.status is not EffectStatus.CONFIRMED or effect.compensation is None:
        return None
    return owe(sight, run, effect.idempotency_key, effect.compensation, external_ref=effect.external_ref)


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

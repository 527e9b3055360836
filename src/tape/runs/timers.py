"""The ledger of timers: each is handled at least once after it is due."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from os import urandom
from typing import Final

from tape.core import codec
from tape.core.app import ANY, serves
from tape.core.caller import Caller
from tape.core.codec import JsonValue
from tape.core.errors import JsonLimit, NotFound, StaleClaim, TooLarge
from tape.core.gate import SignalResult
from tape.core.ids import RunId
from tape.core.page import Page
from tape.core.ports import CellSnapshot
from tape.core.sequence import CellChange, CellId
from tape.core.text import check_name
from tape.core.timer import GATE_TIMEOUT, Timer, TimerClaim, TimerStatus
from tape.operations.gates import CancelTimer, ClaimTimer, FireTimer, GetTimer, ListDueTimers, ListTimers, SetTimer
from tape.runs import gates, lifecycle
from tape.runs.ledger import IN_A_LIST, Ledger, LedgerEvent, Transition, ascending, part, work_filter
from tape.runs.ledger_store import LedgerStore
from tape.runs.lifecycle import RUNS

NOBODY: Final = "nobody"  # the owner of a timer that is fired as it is listed


def place_of(timer: Timer) -> str:
    """Timers of a run are listed in the order of their times."""
    return f"{timer.run_id}/{ascending(timer.fire_at_ms)}/{part(timer.timer_id, IN_A_LIST)}"


TIMERS: Final = Ledger("timer", Timer, place_of)


def key_of(run_id: str, timer_id: str) -> str:
    return f"{run_id}/{part(timer_id)}"


def arm(snapshot: CellSnapshot, timer: Timer) -> Transition[Timer]:
    """Sets the timer; one with other values, or that has fired, is set again."""
    stored = TIMERS.find(snapshot, key_of(timer.run_id, timer.timer_id))
    if stored is not None:
        timer = replace(timer, claim=stored.claim.released())
        if replace(stored, claim=timer.claim) == timer:
            return Transition(result=stored)
    lifecycle.active(snapshot, timer.run_id)
    return _transition(snapshot, timer, "set")


def cancel(snapshot: CellSnapshot, run_id: RunId, timer_id: str) -> Transition[bool]:
    """Whether there was a timer to cancel."""
    timer = TIMERS.find(snapshot, key_of(run_id, timer_id))
    if timer is None or timer.status is not TimerStatus.SET:
        return Transition(result=False)
    transition = _transition(snapshot, _ended(timer, TimerStatus.CANCELLED), "cancelled")
    return transition.returning(True)


def claim(
    snapshot: CellSnapshot, run_id: RunId, timer_id: str, owner: str, lease: timedelta, app: str = ANY
) -> Transition[TimerClaim]:
    """Leases a due timer to a handler of its app; if the handler does not confirm, it is due again.

    A timer of an ended run is cancelled.
    """
    timer = _found(snapshot, run_id, timer_id)
    if timer.due_at_ms is None or snapshot.now_ms < timer.due_at_ms or not serves(app, timer.served_app):
        return Transition(result=TimerClaim(timer=timer, is_acquired=False))
    if not lifecycle.find(snapshot, run_id).is_active:
        transition = _transition(snapshot, _ended(timer, TimerStatus.CANCELLED), "cancelled")
        return transition.returning(TimerClaim(timer=transition.result, is_acquired=False))
    taken = replace(timer, claim=timer.claim.taken(owner, lease, snapshot.now_ms))
    return Transition(result=TimerClaim(timer=taken, is_acquired=True), cells=(_changed(snapshot, taken),))


def fire(snapshot: CellSnapshot, run_id: RunId, timer_id: str, fence: int) -> Transition[Timer]:
    """Confirms a handled timer. One that ends a wait at a gate also sends its signal, if the gate still waits."""
    timer, what = _found(snapshot, run_id, timer_id), f"timer {timer_id!r} of run {run_id!r}"
    timer.claim.check_newest(what, fence)
    if timer.status is TimerStatus.FIRED:
        return Transition(result=timer)
    if timer.status is TimerStatus.CANCELLED:
        raise StaleClaim(f"{what} was cancelled while attempt {fence} handled it, and stays so")
    timer.claim.check(what, fence)
    transition = _transition(snapshot, _ended(timer, TimerStatus.FIRED), "fired")
    timeout = _timeout(snapshot, timer)
    if timeout is None:
        return transition
    return replace(transition, cells=(*transition.cells, *timeout.cells), events=(*transition.events, *timeout.events))


class Timers:
    def __init__(self, store: LedgerStore) -> None:
        self._store = store

    async def set(self, request: SetTimer, caller: Caller) -> Timer:
        timer = Timer(
            run_id=RunId(request.run_id),
            timer_id=request.timer_id or f"timer-{urandom(16).hex()}",
            fire_at_ms=request.fire_at_ms,
            kind=request.kind,
            payload_json=request.payload_json,
            app=request.app,
        )
        if timer.kind == GATE_TIMEOUT:
            _gate_and_index(timer)
        ids = RUNS.at(timer.run_id), TIMERS.at(key_of(timer.run_id, timer.timer_id))
        return await self._store.change(ids, partial(arm, timer=timer), caller)

    async def cancel(self, request: CancelTimer, caller: Caller) -> bool:
        run, timer_id = RunId(request.run_id), request.timer_id
        return await self._store.change(_ids(run, timer_id), partial(cancel, run_id=run, timer_id=timer_id), caller)

    async def get(self, request: GetTimer, caller: Caller) -> Timer | None:
        return await self._store.find(TIMERS, key_of(request.run_id, request.timer_id))

    async def listed(self, request: ListTimers, caller: Caller) -> Page[Timer]:
        statuses = TimerStatus if request.status is None else (request.status,)
        kind = part(request.kind) if request.kind else ""
        return await self._store.page(TIMERS, request, statuses, request.run_id or "", kind)

    async def due(self, request: ListDueTimers, caller: Caller) -> Sequence[Timer]:
        """Those that a worker cannot serve take no place in the list; what is claimed fits into the answer."""
        app, kinds = request.app, request.kinds
        now = await self._store.now_ms(request.now_ms)
        served = work_filter(app, kinds) if app and kinds is not None else None

        def accepts(timer: Timer) -> bool:
            return serves(app, timer.served_app) and (kinds is None or timer.kind in kinds)

        due = await self._store.due_states(TIMERS, TimerStatus.SET, now, request.limit, accepts, served)
        if not request.claim:
            return due
        claims = [await self._claimed(timer, request, caller) for timer in due]
        return [timer for timer in claims if timer is not None]

    async def claim(self, request: ClaimTimer, caller: Caller) -> TimerClaim:
        run, timer_id = RunId(request.run_id), request.timer_id
        decide = partial(
            claim, run_id=run, timer_id=timer_id, owner=request.owner, lease=request.lease, app=request.app
        )
        return await self._store.change(_ids(run, timer_id), decide, caller)

    async def fire(self, request: FireTimer, caller: Caller) -> Timer:
        run, timer_id = RunId(request.run_id), request.timer_id

        async def read() -> CellSnapshot:
            snapshot = await self._store.cells.snapshot(_ids(run, timer_id))
            timer = TIMERS.find(snapshot, key_of(run, timer_id))
            if timer is None or timer.kind != GATE_TIMEOUT:
                return snapshot
            gate = gates.GATES.at(gates.key_of(run, _gate_and_index(timer)[0]))
            return snapshot._replace(cells={**snapshot.cells, **await self._store.cells.read([gate])})

        decide = partial(fire, run_id=run, timer_id=timer_id, fence=request.attempt)
        return await self._store.change_from(read, decide, caller)

    async def _claimed(self, timer: Timer, request: ListDueTimers, caller: Caller) -> Timer | None:
        """A timer that is leased to the claimer; without a claimer it is fired."""
        names = {"run_id": timer.run_id, "timer_id": timer.timer_id}
        claim = ClaimTimer(**names, owner=request.claimer or NOBODY, lease=request.lease, app=request.app)
        claimed = await self.claim(claim, caller)
        if not claimed.is_acquired:
            return None
        if request.claimer:
            return claimed.timer
        try:
            return await self.fire(FireTimer(**names, attempt=claimed.timer.claim.attempt), caller)
        except StaleClaim:  # somebody has cancelled it meanwhile
            return None


def _ids(run_id: RunId, timer_id: str) -> tuple[CellId, ...]:
    return RUNS.at(run_id), lifecycle.DEBTS.at(run_id), TIMERS.at(key_of(run_id, timer_id))


def _timeout(snapshot: CellSnapshot, timer: Timer) -> Transition[SignalResult] | None:
    """The signal that a timer sends to its gate, unless another came first; a full gate gets it without a payload."""
    if timer.kind != GATE_TIMEOUT:
        return None
    gate, index = _gate_and_index(timer)
    here = gates.GATES.find(snapshot, gates.key_of(timer.run_id, gate))
    if index < (0 if here is None else len(here.resolutions)):
        return None
    resolution: dict[str, JsonValue] = {"timed_out": True, "payload": codec.decode(timer.payload_json)}
    try:
        return gates.send(snapshot, timer.run_id, gate, codec.encode(resolution))
    except TooLarge:
        return gates.send(snapshot, timer.run_id, gate, codec.encode({**resolution, "payload": None}))


def _gate_and_index(timer: Timer) -> tuple[str, int]:
    """The gate and the number of the wait that a timer ends."""
    payload = codec.decode(timer.payload_json or "null")
    gate = payload.get("gate") if isinstance(payload, dict) else None
    index = payload.get("index", 0) if isinstance(payload, dict) else 0
    if not isinstance(gate, str) or type(index) is not int:
        raise JsonLimit('the payload of a gate_timeout is {"gate": its name, "index": which wait}')
    return check_name("gate", gate), index


def _found(snapshot: CellSnapshot, run_id: RunId, timer_id: str) -> Timer:
    timer = TIMERS.find(snapshot, key_of(run_id, timer_id))
    if timer is None:
        raise NotFound(f"run {run_id!r} has no timer {timer_id!r}")
    return timer


def _ended(timer: Timer, status: TimerStatus) -> Timer:
    return replace(timer, status=status, claim=timer.claim.released())


def _transition(snapshot: CellSnapshot, timer: Timer, verb: str) -> Transition[Timer]:
    run = lifecycle.find(snapshot, timer.run_id)
    debt = lifecycle.DEBTS.find(snapshot, timer.run_id) or lifecycle.Debt()
    payload: dict[str, JsonValue] = {
        "timer_id": timer.timer_id,
        "kind": timer.kind,
        "status": timer.status.value,
        "fire_at_ms": timer.fire_at_ms,
        "payload_json": timer.payload_json,
        "app": timer.app,
    }
    event = LedgerEvent(run_id=timer.run_id, kind="timer", verb=verb, dims=(timer.kind, timer.run_id), payload=payload)
    closes = lifecycle.closable(run, debt)
    return Transition(
        result=timer, cells=(_changed(snapshot, timer),), events=(event,), opens=not run.is_active, closes=closes
    )


def _changed(snapshot: CellSnapshot, timer: Timer) -> CellChange:
    served_by = timer.served_app, timer.kind
    return TIMERS.change(
        snapshot, key_of(timer.run_id, timer.timer_id), timer, timer.status, timer.due_at_ms, served_by
    )

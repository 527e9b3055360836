"""The ledger of gates: a signal may come before or after its wait, and a gate may be used many times."""

from dataclasses import replace
from functools import partial
from typing import Final

from tape.core import codec
from tape.core.caller import Caller
from tape.core.codec import JsonValue
from tape.core.errors import LimitReached, TooLarge, UsageError
from tape.core.gate import Gate, SignalResult, WaitResult
from tape.core.ids import RunId
from tape.core.page import ANSWER_BYTES, Page, encode_cursor, fit_answer
from tape.core.ports import CellSnapshot
from tape.core.run_state import RunStatus
from tape.core.sequence import CellChange
from tape.operations.gates import AwaitSignal, GetGate, ListGates, SendSignal
from tape.runs import lifecycle
from tape.runs.keyed_calls import KeyedCall
from tape.runs.ledger import Ledger, LedgerEvent, Transition, part
from tape.runs.ledger_store import LedgerStore
from tape.runs.lifecycle import RUNS

MAX_SIGNALS: Final = 1_000
MAX_BYTES: Final = ANSWER_BYTES - codec.MAX_BYTES - (128 << 10)  # an answer to a wait has its signal a second time
SMALL: Final = 64  # bytes of a body that a full gate still accepts, which are within 128 KiB for all signals
MAX_GATES: Final = 100  # of all runs in one page, because each is read with its signals


def key_of(run_id: str, gate: str) -> str:
    return f"{run_id}/{part(gate)}"


GATES: Final = Ledger("gate", Gate, lambda gate: key_of(gate.run_id, gate.gate))
WAITING: Final = "waiting"
RELEASED: Final = "released"


def wait(
    snapshot: CellSnapshot, run_id: RunId, gate: str, index: int = 0, context_json: str = "", fence: int | None = None
) -> Transition[WaitResult]:
    """The signal for this wait; without one the run is parked and its lease is released."""
    here = GATES.find(snapshot, key_of(run_id, gate)) or Gate(run_id=run_id, gate=gate)
    if index < len(here.resolutions):
        return Transition(result=WaitResult(gate=here, resolution_json=here.resolutions[index]))
    if index > len(here.resolutions):
        raise UsageError(f"wait {index} at gate {gate!r} comes after wait {len(here.resolutions)}")
    run = lifecycle.active(snapshot, run_id)
    if here.waiting == index and run.waiting_on_gate == gate:
        return Transition(result=WaitResult(gate=here))
    if fence is not None:
        run.claim.check_newest(f"run {run_id!r}", fence)
    here, run = replace(here, context_json=context_json, waiting=index), lifecycle.parked(run, gate)
    cells = _changed(snapshot, here, WAITING, context_json), lifecycle.changed(snapshot, run)
    return Transition(
        result=WaitResult(gate=here),
        cells=cells,
        events=(_event(here, WAITING, index), lifecycle.event_of(run)),
    )


def send(snapshot: CellSnapshot, run_id: RunId, gate: str, resolution_json: str) -> Transition[SignalResult]:
    """Adds a signal to a gate; a run parked for it becomes runnable. A run that has ended accepts none.

    A full gate accepts only small signals, so that a run that waits there can go on.
    """
    run = lifecycle.find(snapshot, run_id)
    if not run.is_active:
        return Transition(result=SignalResult(is_accepted=False, run_id=run_id))
    before = GATES.find(snapshot, key_of(run_id, gate)) or Gate(run_id=run_id, gate=gate)
    index = len(before.resolutions)
    if index >= MAX_SIGNALS:
        raise LimitReached(f"gate {gate!r} of run {run_id!r} has had {MAX_SIGNALS:,} signals, which is the limit")
    here = replace(before, resolutions=(*before.resolutions, resolution_json), waiting=None)
    cells = (_changed(snapshot, here, RELEASED, resolution_json),)
    events = (_event(here, RELEASED, index),)
    if run.status is not RunStatus.WAITING or before.waiting != index:
        return Transition(result=SignalResult(is_accepted=True, run_id=run_id), cells=cells, events=events)
    free = lifecycle.released(run)
    signal = SignalResult(is_accepted=True, run_id=run_id, run_status=free.status)
    return Transition(
        result=signal, cells=(*cells, lifecycle.changed(snapshot, free)), events=(*events, lifecycle.event_of(free))
    )


class Gates:
    def __init__(self, store: LedgerStore) -> None:
        self._store = store

    async def wait(self, request: AwaitSignal, caller: Caller) -> WaitResult:
        run = RunId(request.run_id)
        decide = partial(
            wait, run_id=run, gate=request.gate, index=request.index, context_json=request.context_json,
            fence=request.fence,
        )  # fmt: skip
        return await self._store.change((RUNS.at(run), GATES.at(key_of(run, request.gate))), decide, caller)

    async def send(self, request: SendSignal, caller: Caller) -> SignalResult:
        session = request.app, request.user, request.session
        run = RunId(request.run_id) or await self._store.newest_run(*session)
        # A repeated call names the same session, whose newest run may be another one by then.
        receiver = (run,) if request.run_id else session
        gate = request.gate
        keyed = KeyedCall.of(request.key, "signal", *receiver, gate, request.resolution_json)

        def decide(snapshot: CellSnapshot) -> Transition[SignalResult]:
            again = keyed.answer(snapshot, SignalResult)
            return again or keyed.store_answer(snapshot, send(snapshot, run, gate, request.resolution_json))

        return await self._store.change((RUNS.at(run), GATES.at(key_of(run, gate)), *keyed.ids), decide, caller)

    async def get(self, request: GetGate, caller: Caller) -> Gate | None:
        return await self._store.find(GATES, key_of(request.run_id, request.gate))

    async def listed(self, request: ListGates, caller: Caller) -> Page[Gate]:
        if request.run_id is not None:
            return await self._store.page(GATES, request, (WAITING, RELEASED), request.run_id)
        limited = replace(request, limit=min(request.limit, MAX_GATES))
        runs = await self._store.page(RUNS, limited, (lifecycle.PARKED,))
        ids = [GATES.at(key_of(run.run_id, run.waiting_on_gate)) for run in runs.rows]
        cells = await self._store.cells.read(ids)
        carried = fit_answer((cells[each] for each in ids if each in cells), lambda cell: cell.size)
        gates = [GATES.state(cell) for cell in carried]
        is_cut = len(gates) < len(cells)
        return Page(gates, encode_cursor((gates[-1].run_id,), request.question) if is_cut else runs.next_cursor)


def _changed(snapshot: CellSnapshot, gate: Gate, status: str, body: str) -> CellChange:
    """The gate with a new body; raises TooLarge if no answer could carry the gate."""
    change = GATES.change(snapshot, key_of(gate.run_id, gate.gate), gate, status)
    if change.cell.size > MAX_BYTES and codec.size(body) > SMALL:
        raise TooLarge(
            f"gate {gate.gate!r} of run {gate.run_id!r} would hold {change.cell.size:,} bytes of signals and context, "
            f"and the limit is {MAX_BYTES:,}; send a reference to a large body, or use another gate"
        )
    return change


def _event(gate: Gate, verb: str, index: int) -> LedgerEvent:
    payload: dict[str, JsonValue] = {"gate": gate.gate, "status": verb, "index": index}
    if verb == RELEASED:
        payload["resolution_json"] = gate.resolutions[index]
    elif gate.context_json:
        payload["context_json"] = gate.context_json
    return LedgerEvent(run_id=gate.run_id, kind="gate", verb=verb, dims=(gate.gate, gate.run_id), payload=payload)

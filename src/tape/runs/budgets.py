"""The ledger of budgets: an amount is reserved before it is spent, so concurrent callers cannot exceed a cap."""

from dataclasses import replace
from functools import partial
from typing import Final

from tape.core.budget import Admission, Amount, Budget, Reservation
from tape.core.caller import Caller
from tape.core.codec import JsonValue
from tape.core.errors import NotReady
from tape.core.ids import RunId
from tape.core.ports import CellSnapshot
from tape.core.sequence import CellChange, CellId
from tape.operations.budgets import AdmitBudget, ChargeBudget, GetBudget, ReserveBudget, SetBudget, SettleBudget
from tape.runs.keyed_calls import KeyedCall
from tape.runs.ledger import Ledger, LedgerEvent, Transition, check_repeat, part
from tape.runs.ledger_store import LedgerStore
from tape.runs.lifecycle import DEBTS, RUNS, Debt, active, closable, find

BUDGETS: Final = Ledger("budget", Budget)
RESERVATIONS: Final = Ledger("reservation", Reservation)


def key_of(run_id: str, reservation_id: str) -> str:
    return f"{run_id}/{part(reservation_id)}"


def cap(snapshot: CellSnapshot, run_id: RunId, usd_cap_micros: int | None, token_cap: int | None) -> Transition[Budget]:
    """Sets new caps; amounts already spent stay."""
    active(snapshot, run_id)
    before = budget_of(snapshot, run_id)
    after = replace(before, usd_cap_micros=usd_cap_micros, token_cap=token_cap)
    if before == after and BUDGETS.at(run_id) in snapshot.cells:
        return Transition(result=before)
    return _transition(snapshot, after, "set")


def reserve(snapshot: CellSnapshot, run_id: RunId, reservation_id: str, asked: Amount) -> Transition[Admission]:
    """Reserves an amount if the caps allow it; reserving the same again changes nothing."""
    budget, reservation = budget_of(snapshot, run_id), RESERVATIONS.find(snapshot, key_of(run_id, reservation_id))
    if reservation is not None:
        check_repeat(f"reservation {reservation_id!r} of run {run_id!r}", reservation.held, asked)
        return Transition(result=Admission(budget=budget, is_admitted=True))
    active(snapshot, run_id)
    if reason := budget.refusal(asked):
        return Transition(result=Admission(budget=budget, is_admitted=False, reason=reason))
    after = replace(budget, reserved=budget.reserved + asked)
    held = _reserved(snapshot, run_id, Reservation(reservation_id=reservation_id, held=asked))
    transition = _transition(snapshot, after, "reserved", {"reservation_id": reservation_id, **_amount(asked)})
    return Transition(
        result=Admission(budget=after, is_admitted=True), cells=(*transition.cells, held), events=transition.events
    )


def settle(snapshot: CellSnapshot, run_id: RunId, reservation_id: str, spent: Amount) -> Transition[Budget]:
    """Spends a reservation: the actual amount, which may be 0. The rest is free again."""
    budget, reservation = budget_of(snapshot, run_id), RESERVATIONS.find(snapshot, key_of(run_id, reservation_id))
    if reservation is None:
        raise NotReady(f"run {run_id!r} has no reservation {reservation_id!r}; reserve before you settle")
    if reservation.spent is not None:
        check_repeat(f"the amount spent of reservation {reservation_id!r}", reservation.spent, spent)
        return Transition(result=budget)
    after = replace(budget, reserved=budget.reserved - reservation.held, spent=budget.spent + spent)
    transition = _transition(snapshot, after, "settled", {"reservation_id": reservation_id, **_amount(spent)})
    return replace(
        transition, cells=(*transition.cells, _reserved(snapshot, run_id, replace(reservation, spent=spent)))
    )


def charge(snapshot: CellSnapshot, run_id: RunId, spent: Amount) -> Transition[Budget]:
    """Spends without a reservation; this may exceed the cap, because the money is already spent."""
    budget = budget_of(snapshot, run_id)
    return _transition(snapshot, replace(budget, spent=budget.spent + spent), "charged", _amount(spent))


def budget_of(snapshot: CellSnapshot, run_id: RunId) -> Budget:
    return BUDGETS.find(snapshot, run_id) or Budget(run_id=run_id)


class Budgets:
    def __init__(self, store: LedgerStore) -> None:
        self._store = store

    async def set(self, request: SetBudget, caller: Caller) -> Budget:
        run = RunId(request.run_id)
        usd = None if request.usd_cap is None else Amount.of(request.usd_cap).usd_micros
        decide = partial(cap, run_id=run, usd_cap_micros=usd, token_cap=request.token_cap)
        return await self._store.change(_ids(run), decide, caller)

    async def admit(self, request: AdmitBudget, caller: Caller) -> Admission:
        budget = await self._find(RunId(request.run_id))
        reason = budget.refusal(request.amount)
        return Admission(budget=budget, is_admitted=not reason, reason=reason)

    async def reserve(self, request: ReserveBudget, caller: Caller) -> Admission:
        run, name = RunId(request.run_id), request.reservation_id
        ids = *_ids(run), RESERVATIONS.at(key_of(run, name))
        decide = partial(reserve, run_id=run, reservation_id=name, asked=request.amount)
        return await self._store.change(ids, decide, caller)

    async def settle(self, request: SettleBudget, caller: Caller) -> Budget:
        run, name = RunId(request.run_id), request.reservation_id
        ids = *_ids(run), RESERVATIONS.at(key_of(run, name))
        decide = partial(settle, run_id=run, reservation_id=name, spent=request.amount)
        return await self._store.change(ids, decide, caller)

    async def charge(self, request: ChargeBudget, caller: Caller) -> Budget:
        run, spent = RunId(request.run_id), request.amount
        keyed = KeyedCall.of(request.key, "charge", run, spent)

        def decide(snapshot: CellSnapshot) -> Transition[Budget]:
            return keyed.answer(snapshot, Budget) or keyed.store_answer(snapshot, charge(snapshot, run, spent))

        return await self._store.change((*_ids(run), *keyed.ids), decide, caller)

    async def get(self, request: GetBudget, caller: Caller) -> Budget:
        return await self._find(RunId(request.run_id))

    async def _find(self, run: RunId) -> Budget:
        snapshot = await self._store.cells.snapshot(_ids(run))
        find(snapshot, run)
        return budget_of(snapshot, run)


def _ids(run_id: RunId) -> tuple[CellId, ...]:
    return RUNS.at(run_id), DEBTS.at(run_id), BUDGETS.at(run_id)


def _reserved(snapshot: CellSnapshot, run_id: RunId, reservation: Reservation) -> CellChange:
    status = "held" if reservation.spent is None else "settled"
    return RESERVATIONS.change(snapshot, key_of(run_id, reservation.reservation_id), reservation, status)


def _amount(amount: Amount) -> dict[str, JsonValue]:
    return {"usd": amount.usd, "tokens": amount.tokens}


def _transition(
    snapshot: CellSnapshot, budget: Budget, verb: str, more: dict[str, JsonValue] | None = None
) -> Transition[Budget]:
    run, debt = find(snapshot, budget.run_id), DEBTS.find(snapshot, budget.run_id) or Debt()
    payload: dict[str, JsonValue] = {
        "usd_cap": None if budget.usd_cap_micros is None else Amount(usd_micros=budget.usd_cap_micros).usd,
        "token_cap": budget.token_cap,
        "usd_spent": budget.spent.usd,
        "tokens_spent": budget.spent.tokens,
        "usd_reserved": budget.reserved.usd,
        "tokens_reserved": budget.reserved.tokens,
        **(more or {}),
    }
    event = LedgerEvent(run_id=budget.run_id, kind="budget", verb=verb, dims=(budget.run_id,), payload=payload)
    cells = (BUDGETS.change(snapshot, budget.run_id, budget, "set"),)
    return Transition(result=budget, cells=cells, events=(event,), opens=not run.is_active, closes=closable(run, debt))

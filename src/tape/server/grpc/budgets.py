"""Procedures of budgets."""

from typing import Final, Protocol

from tape.core.budget import Admission, Amount
from tape.core.caller import Caller
from tape.server.grpc.hall import Hall
from tape.wire import tape_pb2 as pb
from tape.wire.messages import known as messages

TINY: Final = 1e-9


async def set_budget(hall: Hall, request: pb.SetBudgetRequest, caller: Caller) -> pb.BudgetState:
    least = 0 if request.zero_is_a_cap else TINY
    usd_cap = request.usd_cap if request.HasField("usd_cap") and request.usd_cap >= least else None
    token_cap = request.token_cap if request.HasField("token_cap") and request.token_cap >= least else None
    return messages.budget(await hall.ledgers.budgets.set(request.run_id, usd_cap, token_cap, caller))


async def admit_budget(hall: Hall, request: pb.AdmitBudgetRequest, caller: Caller) -> pb.AdmitBudgetResponse:
    return _told(await hall.ledgers.budgets.admit(request.run_id, _amount(request)))


async def reserve_budget(hall: Hall, request: pb.ReserveBudgetRequest, caller: Caller) -> pb.AdmitBudgetResponse:
    budgets = hall.ledgers.budgets
    return _told(await budgets.reserve(request.run_id, request.reservation_id, _amount(request), caller))


async def settle_budget(hall: Hall, request: pb.SettleBudgetRequest, caller: Caller) -> pb.BudgetState:
    budgets = hall.ledgers.budgets
    return messages.budget(await budgets.settle(request.run_id, request.reservation_id, _amount(request), caller))


async def charge_budget(hall: Hall, request: pb.ChargeBudgetRequest, caller: Caller) -> pb.BudgetState:
    budgets = hall.ledgers.budgets
    return messages.budget(await budgets.charge(request.run_id, _amount(request), request.key or None, caller))


async def get_budget(hall: Hall, request: pb.GetBudgetRequest, caller: Caller) -> pb.BudgetState:
    return messages.budget(await hall.ledgers.budgets.find(request.run_id))


class _Priced(Protocol):
    """A request with an amount."""

    usd: float
    tokens: int


def _amount(request: _Priced) -> Amount:
    return Amount.of(request.usd, request.tokens)


def _told(admission: Admission) -> pb.AdmitBudgetResponse:
    return pb.AdmitBudgetResponse(
        admitted=admission.is_admitted, reason=admission.reason, state=messages.budget(admission.budget)
    )

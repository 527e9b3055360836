"""Operations of budgets: spent and reserved amounts together never exceed a cap."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from tape.core.budget import Admission, Amount, Budget
from tape.operations.operation import Access, Operation, OperationRequest, Repeat, Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """The base of requests with an amount in dollars and tokens."""

    run_id: str
    usd: float | Decimal = 0
    tokens: int = 0

    def __post_init__(self) -> None:
        Amount.of(self.usd, self.tokens)

    @property
    def amount(self) -> Amount:
        return Amount.of(self.usd, self.tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetBudget(OperationRequest[Budget]):
    """Sets the caps of a run; None means no cap."""

    run_id: str
    usd_cap: float | Decimal | None = None
    token_cap: int | None = None

    def check(self) -> None:
        Amount.of(self.usd_cap or 0, self.token_cap or 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmitBudget(OperationRequest[Admission], Spending):
    """Whether an amount could be spent now; nothing is reserved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReserveBudget(OperationRequest[Admission], Spending):
    """Reserves an amount under a name if the caps allow it."""

    reservation_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SettleBudget(OperationRequest[Budget], Spending):
    """Spends part of a reservation and frees the rest."""

    reservation_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChargeBudget(OperationRequest[Budget], Spending):
    """Spends without a reservation; with a key, once."""

    key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GetBudget(OperationRequest[Budget]):
    """The caps of a run, what was spent and what is reserved."""

    run_id: str


OPERATIONS: Final = (
    Operation("budget.set", SetBudget, Access.WRITE, Scope.RUN, Repeat.SAME),
    Operation("budget.admit", AdmitBudget, Access.READ, Scope.RUN, Repeat.SAFE),
    Operation("budget.reserve", ReserveBudget, Access.WRITE, Scope.RUN, Repeat.SAME),
    Operation("budget.settle", SettleBudget, Access.WRITE, Scope.RUN, Repeat.SAME),
    Operation("budget.charge", ChargeBudget, Access.WRITE, Scope.RUN, Repeat.KEYED),
    Operation("budget.get", GetBudget, Access.READ, Scope.RUN, Repeat.SAFE),
)

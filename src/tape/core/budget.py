"""A budget: what a run may spend, in dollars and tokens. Amounts are reserved before they are spent."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from tape.core.errors import UsageError, quoted
from tape.core.ids import RunId

MICROS: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """Millionths of a dollar, so that sums are exact, and tokens."""

    usd_micros: int = 0
    tokens: int = 0

    def __post_init__(self) -> None:
        for number in (self.usd_micros, self.tokens):
            if type(number) is not int or not 0 <= number < 1 << 53:
                raise UsageError(f"an amount is whole millionths of a dollar and whole tokens, not {quoted(number)}")

    @classmethod
    def of(cls, usd: float | Decimal = 0, tokens: int = 0) -> "Amount":
        try:
            micros = int((Decimal(str(usd)) * MICROS).to_integral_value())
        except (ArithmeticError, ValueError):
            raise UsageError(f"an amount is a number of dollars, not {quoted(str(usd))}") from None
        return cls(usd_micros=micros, tokens=tokens)

    @property
    def usd(self) -> float:
        return self.usd_micros / MICROS

    def __add__(self, other: "Amount") -> "Amount":
        return Amount(usd_micros=self.usd_micros + other.usd_micros, tokens=self.tokens + other.tokens)

    def __sub__(self, other: "Amount") -> "Amount":
        return Amount(usd_micros=self.usd_micros - other.usd_micros, tokens=self.tokens - other.tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Caps (None: no cap), what was spent, and what is reserved for calls in progress."""

    run_id: RunId
    usd_cap_micros: int | None = None
    token_cap: int | None = None
    spent: Amount = Amount()
    reserved: Amount = Amount()

    def refusal(self, asked: Amount) -> str:
        """Why this amount cannot be spent, or "" if it can."""
        total = self.spent + self.reserved + asked
        if self.usd_cap_micros is not None and total.usd_micros > self.usd_cap_micros:
            return f"{total.usd:.6f} dollars would be over the cap of {self.usd_cap_micros / MICROS:.6f}"
        if self.token_cap is not None and total.tokens > self.token_cap:
            return f"{total.tokens:,} tokens would be over the cap of {self.token_cap:,}"
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """An amount reserved under a name; settling it twice changes nothing."""

    reservation_id: str
    held: Amount
    spent: Amount | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """Whether an amount may be spent, and the reason if not."""

    budget: Budget
    is_admitted: bool
    reason: str = ""

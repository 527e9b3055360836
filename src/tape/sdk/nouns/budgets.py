"""Budgets, as a program sets, reserves and spends them."""

from decimal import Decimal

from tape.core.budget import Admission, Amount, Budget
from tape.core.caller import PLAIN, Caller
from tape.core.ledgers import BudgetLedger


class Budgets:
    """What runs may spend, in dollars and tokens."""

    def __init__(self, ledger: BudgetLedger) -> None:
        self._ledger = ledger

    async def set(
        self,
        run_id: str,
        usd_cap: float | Decimal | None = None,
        token_cap: int | None = None,
        caller: Caller = PLAIN,
    ) -> Budget:
        """Sets caps; None is no cap."""
        return await self._ledger.set(run_id, usd_cap, token_cap, caller)

    async def admit(self, run_id: str, usd: float | Decimal = 0, tokens: int = 0) -> Admission:
        """Whether so much could be spent now; nothing is set aside."""
        return await self._ledger.admit(run_id, Amount.of(usd, tokens))

    async def reserve(
        self, run_id: str, reservation_id: str, usd: float | Decimal = 0, tokens: int = 0, caller: Caller = PLAIN
    ) -> Admission:
        """Sets an amount aside under a name, if it is there."""
        return await self._ledger.reserve(run_id, reservation_id, Amount.of(usd, tokens), caller)

    async def settle(
        self, run_id: str, reservation_id: str, usd: float | Decimal = 0, tokens: int = 0, caller: Caller = PLAIN
    ) -> Budget:
        """Spends of a reservation, and gives back the rest."""
        return await self._ledger.settle(run_id, reservation_id, Amount.of(usd, tokens), caller)

    async def charge(
        self,
        run_id: str,
        usd: float | Decimal = 0,
        tokens: int = 0,
        *,
        key: str | None = None,
        caller: Caller = PLAIN,
    ) -> Budget:
        """Spends without a reservation; with a key, once."""
        return await self._ledger.charge(run_id, Amount.of(usd, tokens), key, caller)

    async def find(self, run_id: str) -> Budget:
        return await self._ledger.find(run_id)

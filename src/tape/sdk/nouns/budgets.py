"""Budgets, as a program sets, reserves and spends them."""

from decimal import Decimal

from tape.core.budget import Admission, Budget
from tape.core.caller import PLAIN, Caller
from tape.operations.budgets import AdmitBudget, ChargeBudget, GetBudget, ReserveBudget, SetBudget, SettleBudget
from tape.operations.ledgers import Ledgers


class Budgets:
    """What runs may spend, in dollars and tokens."""

    def __init__(self, ledgers: Ledgers) -> None:
        self._ledgers = ledgers

    async def set(
        self,
        run_id: str,
        usd_cap: float | Decimal | None = None,
        token_cap: int | None = None,
        caller: Caller = PLAIN,
    ) -> Budget:
        """Sets caps; None is no cap."""
        return await self._ledgers.call(SetBudget(run_id=run_id, usd_cap=usd_cap, token_cap=token_cap), caller)

    async def admit(self, run_id: str, usd: float | Decimal = 0, tokens: int = 0) -> Admission:
        """Whether so much could be spent now; nothing is set aside."""
        return await self._ledgers.call(AdmitBudget(run_id=run_id, usd=usd, tokens=tokens))

    async def reserve(
        self, run_id: str, reservation_id: str, usd: float | Decimal = 0, tokens: int = 0, caller: Caller = PLAIN
    ) -> Admission:
        """Sets an amount aside under a name, if it is there."""
        request = ReserveBudget(run_id=run_id, reservation_id=reservation_id, usd=usd, tokens=tokens)
        return await self._ledgers.call(request, caller)

    async def settle(
        self, run_id: str, reservation_id: str, usd: float | Decimal = 0, tokens: int = 0, caller: Caller = PLAIN
    ) -> Budget:
        """Spends of a reservation, and gives back the rest."""
        request = SettleBudget(run_id=run_id, reservation_id=reservation_id, usd=usd, tokens=tokens)
        return await self._ledgers.call(request, caller)

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
        return await self._ledgers.call(ChargeBudget(run_id=run_id, usd=usd, tokens=tokens, key=key), caller)

    async def get(self, run_id: str) -> Budget:
        return await self._ledgers.call(GetBudget(run_id=run_id))

"""Obligations, as a program registers and meets them."""

from collections.abc import Sequence
from datetime import timedelta

from tape.core.caller import PLAIN, Caller
from tape.core.claim import WORK_LEASE
from tape.core.codec import JsonValue
from tape.core.effect import ATTEMPTS, Compensation
from tape.core.ledgers import ObligationLedger
from tape.core.obligation import Obligation, ObligationClaim, ObligationStatus
from tape.sdk.nouns.body import text_of


class Obligations:
    """What runs have to undo when they fail."""

    def __init__(self, ledger: ObligationLedger, app: str) -> None:
        self._ledger = ledger
        self._app = app

    async def register(
        self,
        run_id: str,
        effect_key: str,
        kind: str,
        payload: JsonValue = None,
        *,
        compensator_ref: str = "",
        max_attempts: int = ATTEMPTS,
        caller: Caller = PLAIN,
    ) -> Obligation:
        """One for each effect and kind; it waits until its run has failed."""
        how = Compensation(
            kind=kind, payload_json=text_of(payload), compensator_ref=compensator_ref, max_attempts=max_attempts,
            app=self._app,
        )  # fmt: skip
        return await self._ledger.register(run_id, effect_key, how, caller)

    async def listed(self, run_id: str, *, only_unresolved: bool = False) -> Sequence[Obligation]:
        """Those of a run, the newest first."""
        return await self._ledger.listed(run_id, only_unresolved=only_unresolved)

    async def due(
        self, limit: int = 500, now_ms: int | None = None, *, compensators: Sequence[str] | None = None
    ) -> Sequence[Obligation]:
        """Those of this app whose turn and time it is, one of each run, the longest due first.

        With names of compensators, only those that can be met by them.
        """
        return await self._ledger.due(limit, now_ms, app=self._app, compensators=compensators)

    async def stuck(self, limit: int = 500) -> Sequence[Obligation]:
        """Those that somebody must look at, the longest stuck first."""
        return await self._ledger.stuck(limit)

    async def claim(
        self, run_id: str, number: int, owner: str, lease: timedelta = WORK_LEASE, caller: Caller = PLAIN
    ) -> ObligationClaim:
        """Leases an obligation, if it is its turn and time."""
        return await self._ledger.claim(run_id, number, owner, lease, caller, self._app)

    async def attempt(
        self, run_id: str, number: int, attempt: int, error: str, next_attempt_at_ms: int = 0, caller: Caller = PLAIN
    ) -> Obligation:
        """Says that an attempt failed; without a next time the obligation is stuck."""
        return await self._ledger.attempt(run_id, number, attempt, error, next_attempt_at_ms, caller)

    async def resolve(
        self,
        run_id: str,
        number: int,
        status: ObligationStatus = ObligationStatus.COMPENSATED,
        result: JsonValue = None,
        *,
        attempt: int | None = None,
        caller: Caller = PLAIN,
    ) -> Obligation:
        """Ends an obligation; a holder shows its attempt, a person need not."""
        return await self._ledger.resolve(run_id, number, ObligationStatus(status), text_of(result), attempt, caller)

"""Obligations, as a program registers and meets them."""

from collections.abc import Sequence
from datetime import timedelta

from tape.core.caller import PLAIN, Caller
from tape.core.claim import WORK_LEASE
from tape.core.codec import JsonValue, encode_optional
from tape.core.effect import ATTEMPTS
from tape.core.obligation import Obligation, ObligationClaim, ObligationStatus
from tape.core.page import Page
from tape.operations.ledgers import Ledgers
from tape.operations.obligations import (
    ClaimObligation,
    GetObligation,
    ListObligations,
    ListUnresolvedObligations,
    RecordObligationAttempt,
    RegisterCompensation,
    ResolveObligation,
    RetryObligation,
)
from tape.operations.operation import PAGE
from tape.operations.whole_list import read_all


class Obligations:
    """What runs have to undo when they fail."""

    def __init__(self, ledgers: Ledgers, app: str) -> None:
        self._ledgers = ledgers
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
        request = RegisterCompensation(
            run_id=run_id, effect_key=effect_key, kind=kind, payload_json=encode_optional(payload),
            compensator_ref=compensator_ref, max_attempts=max_attempts, app=self._app,
        )  # fmt: skip
        return await self._ledgers.call(request, caller)

    async def get(self, run_id: str, number: int) -> Obligation | None:
        return await self._ledgers.call(GetObligation(run_id=run_id, number=number))

    async def list_all(
        self, run_id: str, *, only_unresolved: bool = False, status: ObligationStatus | None = None
    ) -> Sequence[Obligation]:
        """Those of a run, the newest first; or those with one status."""
        request = ListObligations(run_id=run_id, only_unresolved=only_unresolved, status=status)
        return await read_all(self._ledgers, request)

    async def list(
        self, run_id: str, *, only_unresolved: bool = False, status: ObligationStatus | None = None,
        limit: int = PAGE, cursor: str = "",
    ) -> Page[Obligation]:  # fmt: skip
        """A part of what `list_all` returns; the cursor is the `next_cursor` of the page before."""
        request = ListObligations(
            run_id=run_id, only_unresolved=only_unresolved, status=status, limit=limit, cursor=cursor
        )
        return await self._ledgers.call(request)

    async def due(
        self, limit: int = 500, now_ms: int | None = None, *, compensators: Sequence[str] | None = None
    ) -> Sequence[Obligation]:
        """Those of this app whose turn and time it is, one of each run, the longest due first.

        With names of compensators, only those that can be met by them.
        """
        names = None if compensators is None else tuple(compensators)
        if names == ():
            return ()
        request = ListUnresolvedObligations(limit=limit, now_ms=now_ms, app=self._app, compensators=names)
        return await self._ledgers.call(request)

    async def stuck(self, limit: int = 500) -> Sequence[Obligation]:
        """Those to be resolved by a person, the longest stuck first."""
        return await self._ledgers.call(ListUnresolvedObligations(limit=limit, include_stuck=True))

    async def claim(
        self, run_id: str, number: int, owner: str, lease: timedelta = WORK_LEASE, caller: Caller = PLAIN
    ) -> ObligationClaim:
        """Leases an obligation, if it is its turn and time."""
        request = ClaimObligation(run_id=run_id, number=number, owner=owner, lease=lease, app=self._app)
        return await self._ledgers.call(request, caller)

    async def attempt(
        self, run_id: str, number: int, attempt: int, error: str, next_attempt_at_ms: int = 0, caller: Caller = PLAIN
    ) -> Obligation:
        """Records that an attempt failed; without a next time the obligation is stuck."""
        request = RecordObligationAttempt(
            run_id=run_id, number=number, attempt=attempt, error=error, next_attempt_at_ms=next_attempt_at_ms
        )
        return await self._ledgers.call(request, caller)

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
        request = ResolveObligation(
            run_id=run_id,
            number=number,
            status=ObligationStatus(status),
            result_json=encode_optional(result),
            attempt=attempt,
        )
        return await self._ledgers.call(request, caller)

    async def retry(self, run_id: str, number: int, caller: Caller = PLAIN) -> Obligation:
        """Makes a stuck obligation pending and due again, with all its attempts; any other stays as it is."""
        return await self._ledgers.call(RetryObligation(run_id=run_id, number=number), caller)

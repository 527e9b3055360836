"""Effects, as a program begins and completes them, or carries them out for others."""

from collections.abc import Sequence
from datetime import timedelta

from tape.core.caller import PLAIN, Caller
from tape.core.claim import WORK_LEASE
from tape.core.codec import JsonValue, encode_optional
from tape.core.effect import (
    Compensation,
    DispatchMode,
    Effect,
    EffectClaim,
    EffectStatus,
    Resolution,
    Semantics,
)
from tape.core.ids import RunId
from tape.core.page import Page
from tape.operations.effects import (
    BeginEffect,
    ClaimEffectDispatch,
    CompleteEffect,
    DoubtSilentDispatches,
    GetEffect,
    ListEffects,
    ListEffectsToDispatch,
    ListPendingEffects,
    ReconcileEffect,
    RecordDispatchAttempt,
    RecordExternalObservation,
    RetryEffect,
)
from tape.operations.ledgers import Ledgers
from tape.operations.operation import PAGE
from tape.operations.whole_list import read_all


class Effects:
    """What runs do to the world outside: written down before it is done."""

    def __init__(self, ledgers: Ledgers, app: str) -> None:
        self._ledgers = ledgers
        self._app = app

    async def begin(
        self,
        run_id: str,
        tool: str,
        request: JsonValue = None,
        *,
        decision_index: int = -1,
        call_index: int = 0,
        key: str = "",
        semantics: Semantics = Semantics.IDEMPOTENT,
        dispatch_mode: DispatchMode = DispatchMode.INLINE,
        business_key: str = "",
        connector: str = "",
        scope: str = "",
        compensation: Compensation | None = None,
        fence: int | None = None,
        caller: Caller = PLAIN,
    ) -> Effect:
        """The stored effect: pending if it is new, and whatever it has become if it is not."""
        spec = BeginEffect(
            run_id=RunId(run_id),
            tool=tool,
            decision_index=decision_index,
            call_index=call_index,
            request_json=encode_optional(request),
            custom_key=key,
            semantics=Semantics(semantics),
            dispatch_mode=DispatchMode(dispatch_mode),
            business_key=business_key,
            connector=connector,
            scope=scope,
            compensation=compensation,
            app=self._app,
            fence=fence,
        )
        return await self._ledgers.call(spec, caller)

    async def complete(
        self,
        run_id: str,
        key: str,
        status: EffectStatus = EffectStatus.CONFIRMED,
        *,
        response: JsonValue = None,
        error: JsonValue = None,
        fence: int | None = None,
        caller: Caller = PLAIN,
    ) -> Effect:
        """Writes down what came of a pending effect."""
        outcome = CompleteEffect(
            run_id=run_id, idempotency_key=key, status=EffectStatus(status), response_json=encode_optional(response),
            error_json=encode_optional(error), fence=fence,
        )  # fmt: skip
        return await self._ledgers.call(outcome, caller)

    async def reconcile(
        self,
        run_id: str,
        key: str,
        status: EffectStatus,
        *,
        response: JsonValue = None,
        error: JsonValue = None,
        caller: Caller = PLAIN,
    ) -> Effect:
        """Records the outcome of an effect in doubt."""
        outcome = ReconcileEffect(
            run_id=run_id, idempotency_key=key, status=EffectStatus(status), response_json=encode_optional(response),
            error_json=encode_optional(error),
        )  # fmt: skip
        return await self._ledgers.call(outcome, caller)

    async def retry(self, run_id: str, key: str, caller: Caller = PLAIN) -> Effect:
        """Makes an effect in doubt pending and due again, if it may be repeated; any other stays as it is."""
        return await self._ledgers.call(RetryEffect(run_id=run_id, idempotency_key=key), caller)

    async def get(self, run_id: str, key: str) -> Effect | None:
        return await self._ledgers.call(GetEffect(run_id=run_id, idempotency_key=key))

    async def list_all(
        self, run_id: str, *, status: EffectStatus | None = None, connector: str = ""
    ) -> Sequence[Effect]:
        """All of a run, in the order they began; or those with one status or of one connector."""
        return await read_all(self._ledgers, ListEffects(run_id=run_id, status=status, connector=connector))

    async def list(
        self, run_id: str, *, status: EffectStatus | None = None, connector: str = "", limit: int = PAGE,
        cursor: str = "",
    ) -> Page[Effect]:  # fmt: skip
        """A part of what `list_all` returns; the cursor is the `next_cursor` of the page before."""
        request = ListEffects(run_id=run_id, status=status, connector=connector, limit=limit, cursor=cursor)
        return await self._ledgers.call(request)

    async def in_doubt(self, older_than_ms: int = 0, limit: int = 200) -> Sequence[Effect]:
        """Effects to be examined: unknown, or pending inline for longer than `older_than_ms`."""
        return await self._ledgers.call(ListPendingEffects(older_than_ms=older_than_ms, limit=limit))


class Dispatch:
    """The outbox of effects: what runs leave to others."""

    def __init__(self, ledgers: Ledgers, app: str) -> None:
        self._ledgers = ledgers
        self._app = app

    async def due(self, connector: str = "", limit: int = 200, now_ms: int | None = None) -> Sequence[Effect]:
        """Effects that wait for a dispatcher of this app, the longest due first."""
        return await self._ledgers.call(
            ListEffectsToDispatch(connector=connector, limit=limit, now_ms=now_ms, app=self._app)
        )

    async def claim(
        self, run_id: str, key: str, owner: str, lease: timedelta = WORK_LEASE, caller: Caller = PLAIN
    ) -> EffectClaim:
        """Leases an effect to a dispatcher; who does not get it sees who has it."""
        claim = ClaimEffectDispatch(run_id=run_id, idempotency_key=key, owner=owner, lease=lease, app=self._app)
        return await self._ledgers.call(claim, caller)

    async def attempt(
        self, run_id: str, key: str, attempt: int, error: str, next_dispatch_at_ms: int = 0, caller: Caller = PLAIN
    ) -> Effect:
        """Records that a dispatch failed; without a next time the outcome is unknown, and it is not offered again."""
        failed = RecordDispatchAttempt(
            run_id=run_id, idempotency_key=key, attempt=attempt, error=error, next_dispatch_at_ms=next_dispatch_at_ms
        )
        return await self._ledgers.call(failed, caller)

    async def observe(
        self,
        run_id: str,
        key: str,
        resolution: Resolution,
        *,
        external_ref: str = "",
        response: JsonValue = None,
        error: JsonValue = None,
        compensate_on_duplicate: Compensation | None = None,
        caller: Caller = PLAIN,
    ) -> Effect:
        """Records what was observed in the other system."""
        seen = RecordExternalObservation(
            run_id=run_id,
            idempotency_key=key,
            resolution=Resolution(resolution),
            external_ref=external_ref,
            response_json=encode_optional(response),
            error_json=encode_optional(error),
            compensate_on_duplicate=compensate_on_duplicate,
        )
        return await self._ledgers.call(seen, caller)

    async def mark_lost_in_doubt(self, limit: int = 200, now_ms: int | None = None) -> Sequence[Effect]:
        """Puts in doubt what silent dispatchers may have done and must not be repeated."""
        return await self._ledgers.call(DoubtSilentDispatches(limit=limit, now_ms=now_ms))

"""Effects, as a program begins and completes them, or carries them out for others."""

from collections.abc import Sequence
from datetime import timedelta

from tape.core.caller import PLAIN, Caller
from tape.core.claim import WORK_LEASE
from tape.core.codec import JsonValue
from tape.core.effect import (
    Compensation,
    DispatchMode,
    Effect,
    EffectClaim,
    EffectSpec,
    EffectStatus,
    Observation,
    Resolution,
    Semantics,
)
from tape.core.ids import RunId
from tape.core.ledgers import DispatchLedger, EffectLedger
from tape.sdk.nouns.body import text_of


class Effects:
    """What runs do to the world outside: written down before it is done."""

    def __init__(self, ledger: EffectLedger, app: str) -> None:
        self._ledger = ledger
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
        order = EffectSpec(
            run_id=RunId(run_id),
            tool=tool,
            decision_index=decision_index,
            call_index=call_index,
            request_json=text_of(request),
            custom_key=key,
            semantics=Semantics(semantics),
            dispatch_mode=DispatchMode(dispatch_mode),
            business_key=business_key,
            connector=connector,
            scope=scope,
            compensation=compensation,
            app=self._app,
        )
        return await self._ledger.begin(order, fence, caller)

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
        bodies = text_of(response), text_of(error)
        return await self._ledger.complete(run_id, key, EffectStatus(status), *bodies, fence, caller)

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
        """Says what an effect in doubt turned out to be."""
        bodies = text_of(response), text_of(error)
        return await self._ledger.reconcile(run_id, key, EffectStatus(status), *bodies, caller)

    async def find(self, run_id: str, key: str) -> Effect | None:
        return await self._ledger.find(run_id, key)

    async def listed(self, run_id: str) -> Sequence[Effect]:
        """All of a run, in the order they began."""
        return await self._ledger.listed(run_id)

    async def in_doubt(self, older_than_ms: int = 0, limit: int = 200) -> Sequence[Effect]:
        """Effects that somebody should look at: unknown, or pending inline for longer than so."""
        return await self._ledger.in_doubt(older_than_ms, limit)


class Dispatch:
    """The outbox of effects: what runs leave to others."""

    def __init__(self, ledger: DispatchLedger, app: str) -> None:
        self._ledger = ledger
        self._app = app

    async def due(self, connector: str = "", limit: int = 200, now_ms: int | None = None) -> Sequence[Effect]:
        """Effects that wait for a dispatcher of this app, the longest due first."""
        return await self._ledger.due(connector, limit, now_ms, self._app)

    async def claim(
        self, run_id: str, key: str, owner: str, lease: timedelta = WORK_LEASE, caller: Caller = PLAIN
    ) -> EffectClaim:
        """Leases an effect to a dispatcher; who does not get it sees who has it."""
        return await self._ledger.claim(run_id, key, owner, lease, caller, self._app)

    async def attempt(
        self, run_id: str, key: str, attempt: int, error: str, next_dispatch_at_ms: int = 0, caller: Caller = PLAIN
    ) -> Effect:
        """Says that a dispatch failed; without a next time the outcome is unknown, and it is not offered again."""
        return await self._ledger.attempt(run_id, key, attempt, error, next_dispatch_at_ms, caller)

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
        """Says what a look outside has shown."""
        seen = Observation(
            resolution=Resolution(resolution),
            external_ref=external_ref,
            response_json=text_of(response),
            error_json=text_of(error),
            compensate_on_duplicate=compensate_on_duplicate,
        )
        return await self._ledger.observe(run_id, key, seen, caller)

    async def mark_lost_in_doubt(self, limit: int = 200, now_ms: int | None = None) -> Sequence[Effect]:
        """Puts in doubt what silent dispatchers may have done and must not be repeated."""
        return await self._ledger.mark_lost_in_doubt(limit, now_ms)

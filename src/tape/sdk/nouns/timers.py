"""Timers, as a program sets and handles them."""

from collections.abc import Sequence
from datetime import timedelta

from tape.core.caller import PLAIN, Caller
from tape.core.claim import WORK_LEASE
from tape.core.codec import JsonValue
from tape.core.ledgers import TimerLedger
from tape.core.timer import Timer, TimerClaim
from tape.sdk.nouns.body import text_of


class Timers:
    """What is to be done for runs at a time, at least once."""

    def __init__(self, ledger: TimerLedger, app: str) -> None:
        self._ledger = ledger
        self._app = app

    async def set(
        self,
        run_id: str,
        timer_id: str,
        fire_at_ms: int,
        kind: str = "",
        payload: JsonValue = None,
        caller: Caller = PLAIN,
    ) -> Timer:
        """Sets a timer, or sets it anew."""
        return await self._ledger.set(run_id, timer_id, fire_at_ms, kind, text_of(payload), caller, self._app)

    async def cancel(self, run_id: str, timer_id: str, caller: Caller = PLAIN) -> bool:
        """Whether there was a timer to cancel."""
        return await self._ledger.cancel(run_id, timer_id, caller)

    async def due(
        self, limit: int = 200, now_ms: int | None = None, *, kinds: Sequence[str] | None = None
    ) -> Sequence[Timer]:
        """Timers of this app whose time has come and that nobody is handling, the longest due first; of some kinds."""
        return await self._ledger.due(limit, now_ms, app=self._app, kinds=kinds)

    async def claim(
        self, run_id: str, timer_id: str, owner: str, lease: timedelta = WORK_LEASE, caller: Caller = PLAIN
    ) -> TimerClaim:
        """Leases a due timer to its handler; if that one never says that it fired, it is due again."""
        return await self._ledger.claim(run_id, timer_id, owner, lease, caller, self._app)

    async def fire(self, run_id: str, timer_id: str, attempt: int, caller: Caller = PLAIN) -> Timer:
        """Says that a timer was handled."""
        return await self._ledger.fire(run_id, timer_id, attempt, caller)

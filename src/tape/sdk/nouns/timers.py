"""Timers, as a program sets and handles them."""

from collections.abc import Sequence
from datetime import timedelta

from tape.core.caller import PLAIN, Caller
from tape.core.claim import WORK_LEASE
from tape.core.codec import JsonValue, encode_optional
from tape.core.page import Page
from tape.core.text import check_name
from tape.core.timer import Timer, TimerClaim, TimerStatus
from tape.operations.gates import CancelTimer, ClaimTimer, FireTimer, GetTimer, ListDueTimers, ListTimers, SetTimer
from tape.operations.ledgers import Ledgers
from tape.operations.operation import PAGE
from tape.operations.whole_list import read_all


class Timers:
    """What is to be done for runs at a time, at least once."""

    def __init__(self, ledgers: Ledgers, app: str) -> None:
        self._ledgers = ledgers
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
        check_name("timer_id", timer_id)
        request = SetTimer(
            run_id=run_id, timer_id=timer_id, fire_at_ms=fire_at_ms, kind=kind, payload_json=encode_optional(payload),
            app=self._app,
        )  # fmt: skip
        return await self._ledgers.call(request, caller)

    async def cancel(self, run_id: str, timer_id: str, caller: Caller = PLAIN) -> bool:
        """Whether there was a timer to cancel."""
        return await self._ledgers.call(CancelTimer(run_id=run_id, timer_id=timer_id), caller)

    async def get(self, run_id: str, timer_id: str) -> Timer | None:
        return await self._ledgers.call(GetTimer(run_id=run_id, timer_id=timer_id))

    async def list_all(
        self, run_id: str | None = None, *, status: TimerStatus | None = None, kind: str = ""
    ) -> Sequence[Timer]:
        """Timers by run and time, of one run or of all; or those with one status or of one kind."""
        return await read_all(self._ledgers, ListTimers(run_id=run_id, status=status, kind=kind))

    async def list(
        self, run_id: str | None = None, *, status: TimerStatus | None = None, kind: str = "", limit: int = PAGE,
        cursor: str = "",
    ) -> Page[Timer]:  # fmt: skip
        """A part of what `list_all` returns; the cursor is the `next_cursor` of the page before."""
        request = ListTimers(run_id=run_id, status=status, kind=kind, limit=limit, cursor=cursor)
        return await self._ledgers.call(request)

    async def due(
        self, limit: int = 200, now_ms: int | None = None, *, kinds: Sequence[str] | None = None
    ) -> Sequence[Timer]:
        """Timers of this app whose time has come and that nobody is handling, the longest due first; of some kinds."""
        wanted = None if kinds is None else tuple(kinds)
        if wanted == ():
            return ()
        return await self._ledgers.call(ListDueTimers(limit=limit, now_ms=now_ms, app=self._app, kinds=wanted))

    async def claim(
        self, run_id: str, timer_id: str, owner: str, lease: timedelta = WORK_LEASE, caller: Caller = PLAIN
    ) -> TimerClaim:
        """Leases a due timer to its handler; without `fire` before the lease ends, it is due again."""
        request = ClaimTimer(run_id=run_id, timer_id=timer_id, owner=owner, lease=lease, app=self._app)
        return await self._ledgers.call(request, caller)

    async def fire(self, run_id: str, timer_id: str, attempt: int, caller: Caller = PLAIN) -> Timer:
        """Records that a timer was handled."""
        return await self._ledgers.call(FireTimer(run_id=run_id, timer_id=timer_id, attempt=attempt), caller)

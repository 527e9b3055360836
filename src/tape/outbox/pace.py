"""When to look into an outbox: after a hint, when something is due, and in any case every few seconds."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

import anyio

from tape.core.errors import StaleClaim
from tape.core.ports import Queue
from tape.core.task import Claim, Claimed, ClaimRequest, Done, Settlement
from tape.telemetry import log

POLL_S: Final = 5.0
SLOW_S: Final = 300.0


class Paced:
    """A queue that is asked often and looks only when there is reason to; of what is in hand for long it tells once."""

    def __init__(self, queue: Queue, *, is_ordered: bool, slow_s: float = SLOW_S) -> None:
        self._queue = queue
        self._is_ordered = is_ordered
        self._slow_s = slow_s
        self._since: dict[Claim, float] = {}
        self._slow: frozenset[Claim] = frozenset()
        self._is_stirred = True
        self._next_look = 0.0

    def stir(self) -> None:
        """Something may have changed."""
        self._is_stirred = True

    async def claim(self, request: ClaimRequest) -> Claimed:
        wait_s = self._next_look - anyio.current_time()
        if not self._is_stirred and wait_s > 0:
            return Claimed((), timedelta(seconds=wait_s))
        self._is_stirred = False
        try:
            claimed = await self._queue.claim(request)
        except BaseException:
            self._is_stirred = True
            raise
        self._is_stirred |= bool(claimed.tasks)  # there may be more of them
        soon = POLL_S if claimed.more_after is None else min(claimed.more_after.total_seconds(), POLL_S)
        self._next_look = anyio.current_time() + soon
        return claimed

    async def extend(self, claims: Sequence[Claim], lease: timedelta) -> Sequence[StaleClaim | None]:
        self._watch(claims)
        return await self._queue.extend(claims, lease)

    def _watch(self, claims: Sequence[Claim]) -> None:
        now = anyio.current_time()
        self._since = {claim: self._since.get(claim, now) for claim in claims}
        slow = frozenset(claim for claim, since in self._since.items() if now - since >= self._slow_s)
        for claim in slow - self._slow:
            handler_name, _, event_id = claim.task_id.rpartition(":")
            log.warning("outbox.handler_slow", handler_name=handler_name, event_id=event_id, after_s=self._slow_s)
        self._slow = slow

    async def settle(self, settlements: Sequence[Settlement]) -> Sequence[StaleClaim | None]:
        answers = await self._queue.settle(settlements)
        self._is_stirred |= self._is_ordered or any(not isinstance(each.outcome, Done) for each in settlements)
        return answers

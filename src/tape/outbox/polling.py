"""When to query an outbox: after a notification, when a delivery is due, and at least every few seconds."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

import anyio

from tape.core.errors import StaleClaim
from tape.core.ports import Queue
from tape.core.task import Claimed, ClaimRequest, Done, Settlement, TaskClaim
from tape.telemetry import log

POLL_S: Final = 5.0
SLOW_S: Final = 300.0


class PolledQueue:
    """A queue whose `claim` queries the database only when a delivery may be due.

    It logs each delivery once that takes longer than `slow_s`.
    """

    def __init__(self, queue: Queue, *, is_ordered: bool, slow_s: float = SLOW_S) -> None:
        self._queue = queue
        self._is_ordered = is_ordered
        self._slow_s = slow_s
        self._since: dict[TaskClaim, float] = {}
        self._slow: frozenset[TaskClaim] = frozenset()
        self._is_notified = True
        self._next_poll = 0.0

    def notify(self) -> None:
        """Makes the next `claim` query the database."""
        self._is_notified = True

    async def claim(self, request: ClaimRequest) -> Claimed:
        wait_s = self._next_poll - anyio.current_time()
        if not self._is_notified and wait_s > 0:
            return Claimed((), timedelta(seconds=wait_s))
        self._is_notified = False
        try:
            claimed = await self._queue.claim(request)
        except BaseException:
            self._is_notified = True
            raise
        self._is_notified |= bool(claimed.tasks)  # more may be due
        due_s = POLL_S if claimed.more_after is None else min(claimed.more_after.total_seconds(), POLL_S)
        self._next_poll = anyio.current_time() + due_s
        return claimed

    async def extend(self, claims: Sequence[TaskClaim], lease: timedelta) -> Sequence[StaleClaim | None]:
        self._log_slow(claims)
        return await self._queue.extend(claims, lease)

    def _log_slow(self, claims: Sequence[TaskClaim]) -> None:
        now = anyio.current_time()
        self._since = {claim: self._since.get(claim, now) for claim in claims}
        slow = frozenset(claim for claim, since in self._since.items() if now - since >= self._slow_s)
        for claim in slow - self._slow:
            handler_name, _, event_id = claim.task_id.rpartition(":")
            log.warning("outbox.handler_slow", handler_name=handler_name, event_id=event_id, after_s=self._slow_s)
        self._slow = slow

    async def settle(self, settlements: Sequence[Settlement]) -> Sequence[StaleClaim | None]:
        answers = await self._queue.settle(settlements)
        self._is_notified |= self._is_ordered or any(not isinstance(each.outcome, Done) for each in settlements)
        return answers

"""When to look into an outbox: after a hint, when something is due, and in any case every few seconds."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

import anyio

from tape.core.errors import StaleClaim
from tape.core.ports import Queue
from tape.core.task import Claim, Claimed, Done, Settlement, Want

POLL_S: Final = 5.0


class Paced:
    """A queue that is asked often and looks only when there is reason to."""

    def __init__(self, queue: Queue, *, is_ordered: bool) -> None:
        self._queue = queue
        self._is_ordered = is_ordered
        self._is_stirred = True
        self._next_look = 0.0

    def stir(self) -> None:
        """Something may have changed."""
        self._is_stirred = True

    async def claim(self, want: Want) -> Claimed:
        wait_s = self._next_look - anyio.current_time()
        if not self._is_stirred and wait_s > 0:
            return Claimed((), timedelta(seconds=wait_s))
        self._is_stirred = False
        try:
            claimed = await self._queue.claim(want)
        except BaseException:
            self._is_stirred = True
            raise
        self._is_stirred |= bool(claimed.tasks)  # there may be more of them
        soon = POLL_S if claimed.more_after is None else min(claimed.more_after.total_seconds(), POLL_S)
        self._next_look = anyio.current_time() + soon
        return claimed

    async def extend(self, claims: Sequence[Claim], lease: timedelta) -> Sequence[StaleClaim | None]:
        return await self._queue.extend(claims, lease)

    async def settle(self, settlements: Sequence[Settlement]) -> Sequence[StaleClaim | None]:
        answers = await self._queue.settle(settlements)
        self._is_stirred |= self._is_ordered or any(not isinstance(each.outcome, Done) for each in settlements)
        return answers

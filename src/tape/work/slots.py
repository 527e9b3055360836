"""The slots of a worker: how many tasks it may hold at once."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

import anyio

from tape.core.claim import check_lease, check_owner
from tape.core.errors import UsageError
from tape.core.task import ClaimRequest, Task
from tape.work.attempt import Attempt
from tape.work.handler_pool import HandlerPool

MAX_SLOTS: Final = 10_000
WAIT_S: Final = 0.05  # in which quick handlers free their slots


def check_slots(count: int) -> int:
    if not 1 <= count <= MAX_SLOTS:
        raise UsageError(f"a worker has 1 to {MAX_SLOTS:,} slots, not {count}")
    return count


class WorkerSlots:
    """Each slot is free, reserved for a claim that is under way, or busy with a claimed task."""

    def __init__(self, pool: HandlerPool, *, owner: str, count: int, lease: timedelta) -> None:
        self._pool = pool
        self._owner = check_owner(owner)
        self._lease = check_lease(lease)
        self._count = check_slots(count)
        self._reserved = 0
        self._busy = 0
        self.is_closed = False
        self._is_quick = True
        self._changed = asyncio.Event()

    @property
    def free(self) -> int:
        return self._count - self._reserved - self._busy

    def reserve(self) -> ClaimRequest | None:
        """Reserves the free slots; release them with `start`. None: nothing may be claimed now."""
        free, handlers = self.free, self._pool.handlers
        if not self._pool.is_open or self.is_closed or not handlers or free < 1:
            return None
        self._reserved += free
        return ClaimRequest(owner=self._owner, limit=free, reaction_ids=tuple(handlers), lease=self._lease)

    def start(self, request: ClaimRequest, tasks: Sequence[Task]) -> None:
        """Runs the tasks that were claimed for a reservation, and frees the slots that it did not need."""
        self._reserved -= request.limit
        self._busy += len(tasks)
        self._pool.submit(tasks)
        self._changed.set()

    def release(self, attempts: Sequence[Attempt]) -> None:
        """Frees the slots of attempts that are settled or have lost their lease."""
        self._pool.running.difference_update(attempts)
        self._busy -= sum(len(attempt.tasks) for attempt in attempts)
        self._is_quick |= not self._busy
        self._changed.set()

    def close(self) -> None:
        """Reserves nothing more."""
        self.is_closed = True
        self._changed.set()

    async def wait_for_slots(self, count: int) -> None:
        """Waits up to 50 ms for free slots; after a vain wait, not again before the worker was idle."""
        needed = min(count, self._count)
        if self._is_quick and self._pool.is_open and self.free < needed:
            with anyio.move_on_after(WAIT_S):
                while self.free < needed and not self.is_closed:
                    await self._change()
            self._is_quick = self.free >= needed

    async def wait_for_reservation(self) -> None:
        """Waits while another claim has reserved all slots that are not busy."""
        while self.free < 1 and self._reserved and not self.is_closed:
            await self._change()

    async def wait_until_empty(self) -> None:
        while self._busy or self._reserved:
            await self._change()

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()

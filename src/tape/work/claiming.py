"""Claiming: starts what is due whenever a worker has free slots."""

import asyncio
from collections.abc import Sequence
from typing import Final

import anyio

from tape.core.errors import TapeError
from tape.core.ports import Queue
from tape.core.task import Claimed, Done
from tape.work.attempt import Attempt
from tape.work.outages import Outage
from tape.work.slots import WorkerSlots

POLL_S: Final = 0.5


class Claimer:
    """Claims after a wake-up, when slots were freed, and at least every POLL_S: a wake-up may be lost."""

    def __init__(self, queue: Queue, slots: WorkerSlots, outage: Outage) -> None:
        self._queue = queue
        self._slots = slots
        self._outage = outage
        self._wake = asyncio.Event()
        self._is_drained = False

    def wake(self) -> None:
        """Claims again: tasks may be due."""
        self._wake.set()

    async def run(self) -> None:
        """Claims until the slots are closed."""
        while not self._slots.is_closed:
            self._wake.clear()
            await self._slots.wait_for_reservation()
            await self._rest(await self.claim())

    async def claim(self) -> Claimed:
        """Claims tasks for all free slots and starts them."""
        self._is_drained = False
        request = self._slots.reserve()
        if request is None:
            return Claimed(())
        claimed = Claimed(())
        try:
            claimed = await self._queue.claim(request)
        except TapeError as error:
            return Claimed((), self._outage.failed(error))
        finally:
            self._slots.start(request, claimed.tasks)
        self._outage.recovered()
        self._is_drained = claimed.is_all and not claimed.tasks
        return claimed

    def release(self, ended: Sequence[Attempt]) -> None:
        """Frees slots; wakes the claim loop unless the last claim found nothing due."""
        self._is_drained &= all(attempt.outcome is None or isinstance(attempt.outcome, Done) for attempt in ended)
        self._slots.release(ended)
        if not self._is_drained:
            self.wake()

    async def _rest(self, claimed: Claimed) -> None:
        """Waits for a wake-up, or until more may be due."""
        if claimed.tasks and self._slots.free > 0:
            return
        wait_s = POLL_S if claimed.more_after is None else min(claimed.more_after.total_seconds(), POLL_S)
        with anyio.move_on_after(wait_s):
            await self._wake.wait()

"""Lease renewal: keeps the leases of attempts until they are settled."""

from collections.abc import Collection
from datetime import timedelta
from typing import Final

import anyio

from tape.core.errors import TapeError
from tape.core.ports import Queue
from tape.work.attempt import Attempt
from tape.work.outages import Outage

RENEWALS: Final = 3  # in a lease, so that two may be lost


class LeaseRenewer:
    """Renews the leases of all attempts of a worker, and cancels those whose lease is lost."""

    def __init__(self, queue: Queue, running: Collection[Attempt], lease: timedelta, outage: Outage) -> None:
        self._queue = queue
        self._running = running
        self._lease = lease
        self._outage = outage

    async def run(self) -> None:
        while True:
            await anyio.sleep(self._lease.total_seconds() / RENEWALS)
            held = [(attempt, task.claim) for attempt in self._running for task in attempt.tasks]
            try:
                answers = await self._queue.extend([claim for _, claim in held], self._lease) if held else ()
            except TapeError as error:
                self._outage.failed(error)
                continue
            for (attempt, _), stale in zip(held, answers, strict=False):
                if stale is not None:
                    attempt.lose_lease()

"""The worker: claims tasks for its free slots, runs their handlers, renews their leases and settles them."""

import os
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta

import anyio

from tape.core.claim import WORK_LEASE
from tape.core.ports import Queue
from tape.work.attempt import AttemptResults, TaskHandler
from tape.work.claiming import Claimer
from tape.work.handler_pool import HandlerPool
from tape.work.lease_renewal import LeaseRenewer
from tape.work.outages import Outage
from tape.work.settling import Settler
from tape.work.slots import WorkerSlots, check_slots


def new_owner() -> str:
    """A name for a worker that no other has, with its host and process."""
    host = "".join(char if char.isalnum() else "-" for char in socket.gethostname())[:64].lstrip("-")
    return f"{host or 'worker'}-{os.getpid()}-{os.urandom(4).hex()}"


class Worker:
    """Works on a queue until it is stopped. It never holds more leases than it has slots.

    A matcher in the same process may reserve `slots` and start what it claims as it matches.
    """

    def __init__(
        self,
        queue: Queue,
        handlers: Mapping[str, TaskHandler],
        *,
        owner: str,
        slots: int = 16,
        lease: timedelta = WORK_LEASE,
    ) -> None:
        results, outage = AttemptResults(), Outage("worker")
        self._pool = HandlerPool(handlers, results, threads=check_slots(slots))
        self.slots = WorkerSlots(self._pool, owner=owner, count=slots, lease=lease)
        self._claimer = Claimer(queue, self.slots, outage)
        self._settler = Settler(queue, results, self._claimer, outage)
        self._renewer = LeaseRenewer(queue, self._pool.running, lease, outage)

    @property
    def handled(self) -> int:
        """How many tasks it has settled, without those that it gave back unattempted."""
        return self._settler.handled

    def wake(self) -> None:
        """Claims at once: tasks may be due."""
        self._claimer.wake()

    def stop(self) -> None:
        """Claims nothing more; `run` returns when everything that was claimed is settled."""
        self.slots.close()
        self.wake()

    async def run(self) -> None:
        async with self._started():
            await self._claimer.run()
            await self.slots.wait_until_empty()

    async def run_once(self) -> int:
        """Works on what is due now, and on what that makes due; returns how many tasks that were.

        It ends when everything that it claimed was released, which is due again at once.
        """
        async with self._started():
            handled = -1
            while handled < self.handled and (await self._claimer.claim()).tasks:
                handled = self.handled
                await self.slots.wait_until_empty()
        return self.handled

    @asynccontextmanager
    async def _started(self) -> AsyncIterator[None]:
        async with anyio.create_task_group() as group:
            async with self._pool.open(group):
                group.start_soon(self._renewer.run)
                group.start_soon(self._settler.run)
                yield
            group.cancel_scope.cancel()

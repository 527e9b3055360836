"""Polled jobs: work that a worker finds by asking for it, and that the job itself claims and settles."""

from collections.abc import Sequence
from datetime import timedelta
from itertools import islice
from typing import Final, Generic, Protocol, TypeVar

import anyio

from tape.core.errors import StaleClaim, TapeError
from tape.core.task import Claimed, ClaimRequest, Failed, Settlement, Task, TaskClaim, TaskId, TaskStatus
from tape.telemetry import log
from tape.work.answers import Release
from tape.work.worker import Worker

POLL: Final = timedelta(milliseconds=250)
OWNER: Final = "job"  # each job claims under a name of its own

T = TypeVar("T")


class PolledJob(Protocol[T]):
    """Work that falls due. Any worker finds an item; the one that claims it runs and settles it."""

    async def due(self, limit: int) -> Sequence[T]: ...
    def name(self, item: T) -> str: ...
    async def run(self, item: T) -> bool:
        """Claims an item, works on it, renews its lease and settles it; False if another worker has it."""
        ...


def job_worker(job: PolledJob[T], *, slots: int = 4) -> Worker:
    """A worker that runs the items of a job as they fall due."""
    queue = JobQueue(job)
    return Worker(queue, {queue.name: queue}, owner=OWNER, slots=slots)


class JobQueue(Generic[T]):
    """A job as the queue of a worker, and as the handler of what is in it. An item is in it until its run ends."""

    batch = 1
    timeout = None

    def __init__(self, job: PolledJob[T]) -> None:
        self.name = type(job).__name__
        self._job = job
        self._running: dict[str, T] = {}

    async def claim(self, request: ClaimRequest) -> Claimed:
        due = await self._job.due(request.limit + len(self._running))
        fresh = ((name, item) for item in due if (name := self._job.name(item)) not in self._running)
        started = dict(islice(fresh, request.limit))
        self._running |= started
        return Claimed([self._task(name, request.owner) for name in started], POLL)

    async def handle(self, tasks: Sequence[Task], threads: anyio.CapacityLimiter) -> object:
        (task,) = tasks
        try:
            return None if await self._job.run(self._running[task.task_id]) else Release()
        except TapeError as error:
            log.warning("job.failed", job=self.name, reason=str(error))
            return Release()

    async def extend(self, claims: Sequence[TaskClaim], lease: timedelta) -> Sequence[StaleClaim | None]:
        return [None] * len(claims)

    async def settle(self, settlements: Sequence[Settlement]) -> Sequence[StaleClaim | None]:
        for claim, outcome in settlements:
            del self._running[claim.task_id]
            if isinstance(outcome, Failed):
                raise RuntimeError(f"job {self.name} failed: {outcome.error}")
        return [None] * len(settlements)

    def _task(self, name: str, owner: str) -> Task:
        return Task(
            task_id=TaskId(name), reaction_id=self.name, status=TaskStatus.CLAIMED, lease_owner=owner, attempt=1
        )

"""Tasks, as a program looks at, works off and replays them."""

from collections.abc import Sequence
from datetime import timedelta

from tape.core.claim import WORK_LEASE
from tape.core.explanation import TaskDetail
from tape.core.page import ANSWER_BYTES, Page
from tape.core.task import ANY_SHARD, Task, TaskId, TaskStatus
from tape.operations.ledgers import Ledgers
from tape.operations.operation import PAGE
from tape.operations.tasks import (
    MAX_REPLAYED,
    ClaimedTasks,
    ClaimTasks,
    CompleteTask,
    ExtendTask,
    GetTask,
    ListTasks,
    NackTask,
    ReplayTasks,
)


class Tasks:
    """The work for each match of a reaction."""

    def __init__(self, ledgers: Ledgers) -> None:
        self._ledgers = ledgers

    async def list(
        self,
        reaction_id: str = "",
        status: TaskStatus | None = None,
        *,
        limit: int = PAGE,
        cursor: str = "",
        without_payloads: bool = False,
    ) -> Page[Task]:
        """A page of tasks, the newest first: all, or those of one reaction or with one status."""
        request = ListTasks(
            reaction_id=reaction_id, status=status, limit=limit, cursor=cursor, without_payloads=without_payloads
        )
        return await self._ledgers.call(request)

    async def get(self, task_id: str) -> TaskDetail:
        """A task, with each of its deaths and replays."""
        return await self._ledgers.call(GetTask(task_id=task_id))

    async def replay(
        self, task_ids: Sequence[str] = (), *, reaction_id: str = "", limit: int = MAX_REPLAYED
    ) -> Sequence[TaskId]:
        """Makes dead tasks pending again: the named ones, those of a reaction, or all; which ones it were."""
        request = ReplayTasks(task_ids=tuple(task_ids), reaction_id=reaction_id, limit=limit)
        return (await self._ledgers.call(request)).task_ids

    async def claim(
        self,
        owner: str,
        *,
        limit: int = 16,
        reaction_ids: Sequence[str] = (),
        task_ids: Sequence[str] = (),
        shard: int = ANY_SHARD,
        lease: timedelta = WORK_LEASE,
        max_bytes: int = ANSWER_BYTES,
    ) -> ClaimedTasks:
        """Leases due tasks to a worker; with task ids, renews the worker's own claims among these.

        Each claim counts as an attempt of its task, also if its answer is lost.
        """
        request = ClaimTasks(
            owner=owner, limit=limit, reaction_ids=tuple(reaction_ids), task_ids=tuple(task_ids), shard=shard,
            lease=lease, max_bytes=max_bytes,
        )  # fmt: skip
        return await self._ledgers.call(request)

    async def extend(self, task_id: str, owner: str, attempt: int = 0, lease: timedelta = WORK_LEASE) -> Task:
        """Renews the lease of a claimed task."""
        return await self._ledgers.call(ExtendTask(task_id=task_id, owner=owner, attempt=attempt, lease=lease))

    async def complete(self, task_id: str, owner: str, attempt: int = 0) -> Task:
        """Records that the work of a claimed task is done."""
        return await self._ledgers.call(CompleteTask(task_id=task_id, owner=owner, attempt=attempt))

    async def nack(
        self,
        task_id: str,
        owner: str,
        attempt: int = 0,
        *,
        error: str = "",
        permanent: bool = False,
        retry_after_ms: int | None = None,
        release: bool = False,
    ) -> Task:
        """Records that an attempt failed; with `permanent` the task is dead, with `release` it was not attempted."""
        request = NackTask(
            task_id=task_id, owner=owner, attempt=attempt, error=error, permanent=permanent,
            retry_after_ms=retry_after_ms, release=release,
        )  # fmt: skip
        return await self._ledgers.call(request)

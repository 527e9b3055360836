"""Handles the operations of tasks."""

from collections.abc import Iterable
from datetime import timedelta

from tape.bus.journal import Journal
from tape.core.caller import Caller
from tape.core.errors import NotFound, StaleClaim, TooLarge
from tape.core.explanation import TaskDetail
from tape.core.page import ANSWER_BYTES, Page, decode_cursor, encode_cursor, fit_answer
from tape.core.ports import Store
from tape.core.task import Done, Outcome, Settlement, Task, TaskClaim, TaskId, TaskStatus, has_settled
from tape.matcher.explain import task_detail
from tape.operations.tasks import (
    ClaimedTasks,
    ClaimTasks,
    CompleteTask,
    ExtendTask,
    GetTask,
    ListTasks,
    NackTask,
    ReplayedTasks,
    ReplayTasks,
)

_MS = timedelta(milliseconds=1)


class Tasks:
    """The tasks of a store; a store without them raises UsageError when it is asked."""

    def __init__(self, store: Store, journal: Journal) -> None:
        self._store = store
        self._journal = journal

    async def listed(self, request: ListTasks, caller: Caller) -> Page[Task]:
        found = await self._store.tasks.listed(
            reaction_id=request.reaction_id,
            status=request.status or 0,
            limit=request.limit + 1,
            before=decode_cursor(request.cursor, int, str, question=request.question),
            max_bytes=ANSWER_BYTES,
            is_bare=request.without_payloads,
        )
        carried = fit_answer(found[: request.limit], lambda task: task.size)
        return Page(carried, encode_cursor(carried[-1].place, request.question) if len(carried) < len(found) else "")

    async def get(self, request: GetTask, caller: Caller) -> TaskDetail:
        return await task_detail(self._journal, await self._find(request.task_id))

    async def replay(self, request: ReplayTasks, caller: Caller) -> ReplayedTasks:
        tasks = self._store.tasks
        dead = [TaskId(name) for name in request.task_ids] or await tasks.dead(request.reaction_id, request.limit)
        return ReplayedTasks(task_ids=tuple(await tasks.replay(dead)))

    async def claim(self, request: ClaimTasks, caller: Caller) -> ClaimedTasks:
        if request.task_ids:
            return ClaimedTasks(tasks=tuple(await self._renewed(request)))
        claimed = await self._store.tasks.claim(request)
        wait = None if claimed.more_after is None else claimed.more_after // _MS
        return ClaimedTasks(tasks=tuple(claimed.tasks), more_after_ms=wait)

    async def extend(self, request: ExtendTask, caller: Caller) -> Task:
        await self._find(request.task_id)
        (stale,) = await self._store.tasks.extend([request.claim], request.lease)
        return await self._unless(stale, request.task_id)

    async def complete(self, request: CompleteTask, caller: Caller) -> Task:
        return await self._settle(request.claim, Done())

    async def nack(self, request: NackTask, caller: Caller) -> Task:
        return await self._settle(request.claim, request.outcome)

    async def _settle(self, claim: TaskClaim, outcome: Outcome) -> Task:
        """Settles an attempt; the repetition of what settled it gets the same task."""
        await self._find(claim.task_id)
        (stale,) = await self._store.tasks.settle([Settlement(claim, outcome)])
        if stale is not None and has_settled(await self._find(claim.task_id), claim, outcome):
            stale = None
        return await self._unless(stale, claim.task_id)

    async def _unless(self, stale: StaleClaim | None, task_id: str) -> Task:
        if stale is not None:
            raise stale
        return await self._find(task_id)

    async def _find(self, task_id: str) -> Task:
        task = await self._store.tasks.find(TaskId(task_id))
        if task is None:
            raise NotFound(f"there is no task {task_id!r}")
        return task

    async def _renewed(self, request: ClaimTasks) -> list[Task]:
        """The owner's own live claims among those it names, leased anew: the first that one answer carries."""
        held = await self._held(request.task_ids, request.owner, request.max_bytes)
        claims = [TaskClaim(task_id, request.owner, 0) for task_id in held]
        refused = await self._store.tasks.extend(claims, request.lease)
        return [await self._find(claim.task_id) for claim, stale in zip(claims, refused, strict=True) if stale is None]

    async def _held(self, task_ids: Iterable[str], owner: str, room: int) -> list[TaskId]:
        """Those of the owner's claims that fit into so many bytes; like a claim, it raises TooLarge if none does."""
        held: list[TaskId] = []
        left = room
        for task_id in dict.fromkeys(task_ids):
            task = await self._store.tasks.find(TaskId(task_id))
            if task is None or task.lease_owner != owner or task.status is not TaskStatus.CLAIMED:
                continue
            if task.size > room and not held:
                raise TooLarge(f"task {task_id!r} takes {task.size:,} bytes, more than max_bytes, which is {room:,}")
            left -= task.size
            if left < 0:
                break
            held.append(task.task_id)
        return held

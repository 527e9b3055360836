"""Operations of tasks: workers claim and settle them, and dead ones can be replayed."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from tape.core.claim import WORK_LEASE
from tape.core.errors import UsageError
from tape.core.explanation import TaskDetail
from tape.core.page import ANSWER_BYTES
from tape.core.task import ClaimRequest, Died, Failed, Outcome, Released, Task, TaskClaim, TaskId, TaskStatus
from tape.core.text import check_name
from tape.operations.operation import Access, Operation, OperationRequest, PageRequest, Repeat, Scope, Shape

MAX_REPLAYED: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ListTasks(PageRequest[Task]):
    """Tasks, the newest first: all, or those of one reaction or with one status."""

    reaction_id: str = ""
    status: TaskStatus | None = None
    without_payloads: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GetTask(OperationRequest[TaskDetail]):
    """A task, with each of its deaths and replays."""

    task_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedTasks:
    """The tasks that are pending again."""

    task_ids: tuple[TaskId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayTasks(OperationRequest[ReplayedTasks]):
    """Makes dead tasks pending again: the named ones, those of a reaction, or all, up to the limit."""

    task_ids: tuple[str, ...] = ()
    reaction_id: str = ""
    limit: int = MAX_REPLAYED

    def check(self) -> None:
        if self.task_ids and self.reaction_id:
            raise UsageError("name tasks or a reaction, not both")
        for name in self.task_ids:
            check_name("task_id", name, may_be_empty=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedTasks:
    """The claimed tasks, and after how long more will be due (None: not known; 0: more may be due that did not fit)."""

    tasks: tuple[Task, ...]
    more_after_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimTasks(OperationRequest[ClaimedTasks], ClaimRequest):
    """Leases due tasks to a worker, as many as fit; with `task_ids`, renews the worker's own claims among these.

    Each claim counts as an attempt of its task, also if its answer is lost.
    """

    reaction_ids: tuple[str, ...] = ()
    task_ids: tuple[str, ...] = ()

    def check(self) -> None:
        object.__setattr__(self, "max_bytes", min(self.max_bytes, ANSWER_BYTES))


@dataclass(frozen=True, slots=True, kw_only=True)
class OfAttempt:
    """The base of requests of a worker that holds a task; attempt 0 is its newest one."""

    task_id: str
    owner: str
    attempt: int = 0

    @property
    def claim(self) -> TaskClaim:
        return TaskClaim(TaskId(self.task_id), self.owner, self.attempt)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtendTask(OperationRequest[Task], OfAttempt):
    """Renews the lease of a claimed task."""

    lease: timedelta = WORK_LEASE


@dataclass(frozen=True, slots=True, kw_only=True)
class CompleteTask(OperationRequest[Task], OfAttempt):
    """Records that the work of a claimed task is done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NackTask(OperationRequest[Task], OfAttempt):
    """Records that an attempt failed: it is retried, or with `permanent` dead; with `release` it was not attempted."""

    error: str = ""
    permanent: bool = False
    retry_after_ms: int | None = None
    release: bool = False

    @property
    def outcome(self) -> Outcome:
        if self.release:
            return Released()
        if self.permanent:
            return Died(self.error)
        after = None if self.retry_after_ms is None else timedelta(milliseconds=self.retry_after_ms)
        return Failed(self.error, after)


OPERATIONS: Final = (
    Operation("task.list", ListTasks, Access.READ, Scope.REACTION, Repeat.SAFE, Shape.PAGE),
    Operation("task.get", GetTask, Access.READ, Scope.REACTION, Repeat.SAFE),
    Operation("task.replay", ReplayTasks, Access.WRITE, Scope.REACTION, Repeat.AGAIN),
    Operation("task.claim", ClaimTasks, Access.WRITE, Scope.REACTION, Repeat.AGAIN),
    Operation("task.extend", ExtendTask, Access.WRITE, Scope.REACTION, Repeat.AGAIN),
    Operation("task.complete", CompleteTask, Access.WRITE, Scope.REACTION, Repeat.SAME),
    Operation("task.nack", NackTask, Access.WRITE, Scope.REACTION, Repeat.SAME),
)

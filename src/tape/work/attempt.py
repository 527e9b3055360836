"""An attempt at claimed tasks: its deadline, and how the worker cancels it."""

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import groupby
from math import inf
from typing import Protocol

import anyio

from tape.core.task import Outcome, Task
from tape.telemetry import log
from tape.work.answers import outcome_of
from tape.work.deadline import END_S, exceeded


class TaskHandler(Protocol):
    """Handles up to `batch` tasks at once; what it returns or raises is its answer for all of them.

    An attempt that takes longer than the timeout is cancelled and has failed. None means that it may take any time.
    """

    @property
    def batch(self) -> int: ...
    @property
    def timeout(self) -> timedelta | None: ...
    async def handle(self, tasks: Sequence[Task], threads: anyio.CapacityLimiter) -> object: ...


@dataclass(slots=True, eq=False)
class Attempt:
    """Claimed tasks and, while their handler runs, the cancel scope that it runs in.

    It is cancelled when it `has_lost_lease`, and with the lease the right to settle, or when it `is_late`. It
    `is_detached` if its handler ignores the cancellation for END_S: the worker does not wait for it any more.
    An attempt that has ended without an outcome has lost its lease.
    """

    tasks: Sequence[Task]
    outcome: Outcome | None = None
    has_lost_lease: bool = False
    is_late: bool = False
    is_detached: bool = False
    scope: anyio.CancelScope | None = None
    timeout: timedelta | None = None
    results: "AttemptResults | None" = None
    began_s: float = 0.0
    due_s: float = inf
    timer: asyncio.TimerHandle | None = None

    def begin(self, scope: anyio.CancelScope, timeout: timedelta | None, results: "AttemptResults") -> None:
        """Marks the start of the handler; cancelling the attempt cancels the scope."""
        self.scope, self.timeout, self.results = scope, timeout, results
        self.began_s = asyncio.get_running_loop().time()
        self.due_s = inf if timeout is None else self.began_s + timeout.total_seconds()

    def end(self) -> None:
        """Marks the end of the handler; the next attempt may use the scope."""
        self.scope = None
        if self.timer is not None:
            self.timer.cancel()
        if self.is_detached:
            log.warning("task.handler_ended", **self.log_fields)

    def expire(self) -> None:
        """Cancels the attempt because its deadline has passed."""
        if self.timeout is not None and not self.has_lost_lease:
            self.outcome = outcome_of(exceeded(self.timeout))
        self.is_late, self.due_s = True, inf
        self._cancel()

    def lose_lease(self) -> None:
        """Cancels the attempt, or keeps it from starting, because another worker may have its tasks."""
        if not self.has_lost_lease:
            self.has_lost_lease, self.outcome = True, None
            self._cancel()

    @property
    def is_cancelled(self) -> bool:
        return self.has_lost_lease or self.is_late

    @property
    def log_fields(self) -> dict[str, object]:
        seconds = round(asyncio.get_running_loop().time() - self.began_s, 3)
        return {"reaction_id": self.tasks[0].reaction_id, "task_id": self.tasks[0].task_id, "duration_s": seconds}

    def _cancel(self) -> None:
        if self.scope is not None and self.timer is None:
            self.scope.cancel()
            self.timer = asyncio.get_running_loop().call_later(END_S, self._detach)

    def _detach(self) -> None:
        if self.scope is not None and self.results is not None:
            self.is_detached = True
            log.warning("task.handler_detached", **self.log_fields)
            self.results.add(self)


class AttemptResults:
    """Attempts that have ended and are not settled yet."""

    def __init__(self) -> None:
        self._ended: list[Attempt] = []
        self._has_ended = asyncio.Event()

    def add(self, attempt: Attempt) -> None:
        self._ended.append(attempt)
        if len(self._ended) == 1:
            self._has_ended.set()

    async def take(self) -> list[Attempt]:
        """Waits for the first attempt that ends, and returns all that have ended by then."""
        await self._has_ended.wait()
        self._has_ended.clear()
        ended, self._ended = self._ended, []
        return ended


class Deadlines:
    """Expires attempts that take too long. All share one timer: a timer per attempt costs more than a quick handler."""

    def __init__(self, running: Collection[Attempt]) -> None:
        self._running = running
        self._due_s = inf
        self._timer: asyncio.TimerHandle | None = None

    def watch(self, attempt: Attempt) -> None:
        """Expires an attempt that has begun, unless it ends before its deadline."""
        if attempt.due_s < self._due_s:
            self.close()
            self._due_s = attempt.due_s
            self._timer = asyncio.get_running_loop().call_at(self._due_s, self._expire)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._due_s, self._timer = inf, None

    def _expire(self) -> None:
        now_s, self._due_s = self._due_s, inf
        for attempt in [attempt for attempt in self._running if attempt.scope is not None]:
            if attempt.due_s <= now_s:
                attempt.expire()
            self.watch(attempt)


def split_into_attempts(tasks: Sequence[Task], handlers: Mapping[str, TaskHandler]) -> Iterator[Attempt]:
    """One attempt per task, or per batch where a handler takes batches."""
    if len(tasks) == 1:
        yield Attempt(tasks)
        return
    for reaction_id, group in groupby(sorted(tasks, key=_reaction_of), key=_reaction_of):
        size = handlers[reaction_id].batch
        if size == 1:
            yield from (Attempt((task,)) for task in group)
        else:
            batch = list(group)
            yield from (Attempt(batch[first : first + size]) for first in range(0, len(batch), size))


def _reaction_of(task: Task) -> str:
    return task.reaction_id

"""An attempt that a worker has begun: its tasks, its deadline, and how it is ended from outside."""

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from itertools import groupby
from math import inf
from typing import Protocol

import anyio

from tape.core.task import Claim, Task
from tape.telemetry import log
from tape.work.deadline import END_S


class TaskHandler(Protocol):
    """What the loop asks of a handler: its answer for up to `batch` tasks, which it may give by raising.

    An attempt that takes longer than the timeout is cancelled and has failed; None is for work that may wait.
    """

    @property
    def batch(self) -> int: ...
    @property
    def timeout(self) -> timedelta | None: ...
    async def handle(self, tasks: Sequence[Task], threads: anyio.CapacityLimiter) -> object: ...


@dataclass(slots=True, eq=False)
class Attempt:
    """Claimed tasks and, while their handler runs, the scope it runs in.

    It is cancelled when its lease `is_lost`, and with that the right to settle, or when its deadline has passed and it
    `is_late`. A handler that goes on after it was cancelled `is_left`: nobody waits for it any more.
    """

    tasks: Sequence[Task]
    is_lost: bool = False
    is_late: bool = False
    is_left: bool = False
    scope: anyio.CancelScope | None = None
    began_s: float = 0.0
    due_s: float = inf
    timer: asyncio.TimerHandle | None = None
    on_left: "Callable[[Attempt], None] | None" = None

    def begin(self, scope: anyio.CancelScope, timeout: timedelta | None, on_left: "Callable[[Attempt], None]") -> None:
        """Its handler is called now, in a scope of which it may use up the right to be cancelled."""
        self.scope, self.on_left, self.began_s = scope, on_left, asyncio.get_running_loop().time()
        self.due_s = inf if timeout is None else self.began_s + timeout.total_seconds()

    def end(self) -> None:
        """Its handler has ended; from here on the scope is that of the next one."""
        self.scope = None
        if self.timer is not None:
            self.timer.cancel()
        if self.is_left:
            log.warning("task.handler_ended", **self.facts)

    def expire(self) -> None:
        """Its deadline has passed."""
        self.is_late, self.due_s = True, inf
        self._cancel()

    def lose(self) -> None:
        """Its lease was lost; what has not begun does not begin."""
        if not self.is_lost:
            self.is_lost = True
            self._cancel()

    @property
    def is_cancelled(self) -> bool:
        return self.is_lost or self.is_late

    @property
    def facts(self) -> dict[str, object]:
        """What a log line says of it."""
        seconds = round(asyncio.get_running_loop().time() - self.began_s, 3)
        return {"reaction_id": self.tasks[0].reaction_id, "task_id": self.tasks[0].task_id, "duration_s": seconds}

    @property
    def claims(self) -> list[Claim]:
        return [Claim(task.task_id, task.lease_owner, task.attempt) for task in self.tasks]

    def _cancel(self) -> None:
        if self.scope is not None and self.timer is None:
            self.scope.cancel()
            self.timer = asyncio.get_running_loop().call_later(END_S, self._leave)

    def _leave(self) -> None:
        if self.scope is not None and self.on_left is not None:
            self.is_left = True
            log.warning("task.handler_left", **self.facts)
            self.on_left(self)


class Deadlines:
    """Expires attempts that take too long. One timer serves them all: one for each would cost more than quick work."""

    def __init__(self, running: Collection[Attempt]) -> None:
        self._running = running
        self._due_s = inf
        self._timer: asyncio.TimerHandle | None = None

    def watch(self, running: Attempt) -> None:
        """Expires an attempt that has begun, unless it ends before its deadline."""
        if running.due_s < self._due_s:
            self.close()
            self._due_s = running.due_s
            self._timer = asyncio.get_running_loop().call_at(self._due_s, self._expire)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._due_s, self._timer = inf, None

    def _expire(self) -> None:
        now_s, self._due_s = self._due_s, inf
        for running in [running for running in self._running if running.scope is not None]:
            if running.due_s <= now_s:
                running.expire()
            self.watch(running)


def dealt(tasks: Sequence[Task], handlers: Mapping[str, TaskHandler]) -> Iterator[Attempt]:
    """The tasks as their handlers take them: one by one, or in batches."""
    if len(tasks) == 1:
        yield Attempt(tasks)
        return
    for reaction_id, group in groupby(sorted(tasks, key=_reaction_of), key=_reaction_of):
        size = handlers[reaction_id].batch
        if size == 1:
            yield from (Attempt((task,)) for task in group)
        else:
            mine = list(group)
            yield from (Attempt(mine[first : first + size]) for first in range(0, len(mine), size))


async def clear_cancellation() -> None:
    """Takes back a cancellation of this task that its handler asked for, so that it does not meet the next one."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(0)
        while task.cancelling():
            task.uncancel()


def _reaction_of(task: Task) -> str:
    return task.reaction_id

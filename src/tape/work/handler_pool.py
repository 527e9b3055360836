"""The handler pool: runs attempts in a few asyncio tasks, each of which takes one attempt after another."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final

import anyio
from anyio.abc import TaskGroup
from anyio.lowlevel import checkpoint

from tape.core.causation import caused_by
from tape.core.task import Task
from tape.telemetry import is_watched, span
from tape.work.answers import Retry, outcome_of
from tape.work.attempt import Attempt, AttemptResults, Deadlines, TaskHandler, split_into_attempts
from tape.work.handler_tasks import HandlerTasks

BATCH: Final = 64  # attempts that a worker task runs before it yields to the event loop


class HandlerPool:
    """Runs attempts. A task of its own for each would cost more than most handlers do."""

    def __init__(self, handlers: Mapping[str, TaskHandler], results: AttemptResults, *, threads: int) -> None:
        self.handlers = handlers
        self.running: set[Attempt] = set()
        self._results = results
        self._threads = anyio.CapacityLimiter(threads)
        self._deadlines = Deadlines(self.running)
        self._pending: deque[Attempt] = deque()
        self._parked: list[asyncio.Event] = []
        self._is_waking = False
        self._tasks: HandlerTasks | None = None

    @property
    def is_open(self) -> bool:
        return self._tasks is not None

    @asynccontextmanager
    async def open(self, group: TaskGroup) -> AsyncIterator[None]:
        """Runs attempts during the block; at its end, handlers are cancelled and get END_S to stop."""
        self._parked, self._is_waking = [], False
        tasks = self._tasks = HandlerTasks(group)
        try:
            yield
        finally:
            self._tasks = None
            self._deadlines.close()
            await tasks.end()

    def submit(self, tasks: Sequence[Task]) -> None:
        """Runs the handlers of claimed tasks."""
        attempts = list(split_into_attempts(tasks, self.handlers))
        self.running.update(attempts)
        self._pending.extend(attempts)
        self._wake_task()

    def _wake_task(self) -> None:
        """Has one more worker task take what is pending. Each wakes the next, so that few tasks do quick work."""
        if self._pending and not self._is_waking and self._tasks is not None:
            self._is_waking = True
            if self._parked:
                self._parked.pop().set()
            else:
                self._tasks.start(self._worker_task)

    async def _worker_task(self) -> None:
        """Runs batches in one cancel scope, and in a new one after an attempt was cancelled."""
        while True:
            with anyio.CancelScope() as scope:
                while not scope.cancel_called:
                    self._is_waking = False
                    await self._run_batch(scope)
                    await self._park(scope)

    async def _run_batch(self, scope: anyio.CancelScope) -> None:
        is_traced = is_watched()
        for _ in range(BATCH):
            if not self._pending or scope.cancel_called:
                return
            attempt = self._pending.popleft()
            self._wake_task()
            if attempt.has_lost_lease:
                self._results.add(attempt)
            else:
                await self._run(attempt, scope, is_traced)

    async def _park(self, scope: anyio.CancelScope) -> None:
        """Waits until an attempt is pending; if one is already, lets other tasks run first."""
        if self._pending or scope.cancel_called:
            await checkpoint()
        else:
            is_woken = asyncio.Event()
            self._parked.append(is_woken)
            await is_woken.wait()

    async def _run(self, attempt: Attempt, scope: anyio.CancelScope, is_traced: bool) -> None:
        attempt.begin(scope, self.handlers[attempt.tasks[0].reaction_id].timeout, self._results)
        self._deadlines.watch(attempt)
        answer: object = None
        try:
            answer = await self._answer(attempt, is_traced)
            if not self._is_ending(attempt):
                await _clear_cancellation()
        finally:
            attempt.end()
            if attempt.is_cancelled and not attempt.is_detached:
                self._results.add(attempt)
        if not attempt.is_cancelled:
            attempt.outcome = outcome_of(answer)
            self._results.add(attempt)

    def _is_ending(self, attempt: Attempt) -> bool:
        """Whether the worker cancels the attempt, and not its own handler."""
        return attempt.is_cancelled or not self.is_open

    async def _answer(self, attempt: Attempt, is_traced: bool) -> object:
        tasks, first = attempt.tasks, attempt.tasks[0]
        cause = first.source_global_seq if len(tasks) == 1 else max(task.source_global_seq for task in tasks)
        handler = self.handlers[first.reaction_id]
        try:
            with caused_by(cause):
                if not (is_traced or first.trace_id):
                    return await handler.handle(tasks, self._threads)
                with span(f"handle {first.reaction_id}", first.trace_id, first.span_id):
                    return await handler.handle(tasks, self._threads)
        except asyncio.CancelledError:
            if self._is_ending(attempt):
                raise
            return Retry("the handler was cancelled by itself or by something that it called")
        except Exception as error:  # noqa: BLE001 - a handler may raise anything, and that is its answer
            return error


async def _clear_cancellation() -> None:
    """Takes back a cancellation that a handler requested of its own task, so that the next attempt does not get it."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(0)
        while task.cancelling():
            task.uncancel()

"""The asyncio tasks of a worker loop, which end with it, but for those that ignore their cancellation."""

import asyncio
import atexit
from collections.abc import Callable, Coroutine
from typing import Any, Final, NoReturn

import anyio
from anyio.abc import TaskGroup

from tape.telemetry import log
from tape.work.deadline import END_S
from tape.work.threads import exit_now, exit_status

_LEFT: "Final[set[asyncio.Task[None]]]" = set()


class HandlerTasks:
    """Tasks beside a task group: a group could never be left while a task in it ignores its cancellation.

    An error of a task becomes one of the group.
    """

    def __init__(self, group: TaskGroup) -> None:
        self._group = group
        self._scopes: dict[asyncio.Task[None], anyio.CancelScope] = {}

    def start(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        scope = anyio.CancelScope()
        task = asyncio.get_running_loop().create_task(_within(scope, work))
        self._scopes[task] = scope
        task.add_done_callback(self._ended)

    async def end(self) -> None:
        """Cancels all, and waits for them as long as they may take to end."""
        for scope in self._scopes.values():
            scope.cancel()
        if self._scopes:
            with anyio.CancelScope(shield=True):
                await asyncio.wait(self._scopes, timeout=END_S)
        if self._scopes:
            log.warning("worker.handlers_detached", count=len(self._scopes))
            for task in self._scopes:
                _leave(task)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        del self._scopes[task]
        if not task.cancelled() and (error := task.exception()) is not None:
            self._group.start_soon(_raise, error)


def has_left() -> bool:
    """Whether tasks go on of which nobody waits for the end."""
    return any(not task.done() for task in _LEFT)


def _leave(task: "asyncio.Task[None]") -> None:
    """Has the end of the event loop not wait for a task, which it would do for ever."""
    _LEFT.add(task)
    task.add_done_callback(_LEFT.discard)
    asyncio.tasks._unregister_task(task)  # noqa: SLF001 - documented, for those who make tasks of their own


@atexit.register
def _end_process() -> None:
    """Ends the process before Python destroys the tasks that are left: that runs them once more, without a loop."""
    if has_left():
        exit_now(exit_status())


async def _within(scope: anyio.CancelScope, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    with scope:
        await work()


async def _raise(error: BaseException) -> NoReturn:
    raise error

"""The asyncio tasks of a handler pool. They end with it, except those that ignore their cancellation."""

import asyncio
import atexit
from collections.abc import Callable, Coroutine
from typing import Any, Final, NoReturn

import anyio
from anyio.abc import TaskGroup

from tape.telemetry import log
from tape.work.deadline import END_S
from tape.work.threads import exit_now, exit_status

_DETACHED: "Final[set[asyncio.Task[None]]]" = set()


class HandlerTasks:
    """Tasks outside a task group: the group could not end while a task in it ignores its cancellation.

    If a task raises an error, the group raises it.
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
        """Cancels all tasks, waits up to END_S for them, and detaches the rest."""
        for scope in self._scopes.values():
            scope.cancel()
        if self._scopes:
            with anyio.CancelScope(shield=True):
                await asyncio.wait(self._scopes, timeout=END_S)
        if self._scopes:
            log.warning("worker.handlers_detached", count=len(self._scopes))
            for task in self._scopes:
                _detach(task)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        del self._scopes[task]
        if not task.cancelled() and (error := task.exception()) is not None:
            self._group.start_soon(_raise, error)


def has_detached() -> bool:
    """Whether detached tasks still run."""
    return any(not task.done() for task in _DETACHED)


def _detach(task: "asyncio.Task[None]") -> None:
    """Keeps the end of the event loop from waiting for a task, which would take for ever."""
    _DETACHED.add(task)
    task.add_done_callback(_DETACHED.discard)
    asyncio.tasks._unregister_task(task)  # noqa: SLF001 - documented for custom task classes


@atexit.register
def _end_process() -> None:
    """Ends the process before Python destroys detached tasks, which would run them once more without a loop."""
    if has_detached():
        exit_now(exit_status())


async def _within(scope: anyio.CancelScope, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    with scope:
        await work()


async def _raise(error: BaseException) -> NoReturn:
    raise error

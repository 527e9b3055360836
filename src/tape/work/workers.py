"""The asyncio tasks of a worker loop, which end with it, but for those that ignore their cancellation."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, NoReturn

import anyio
from anyio.abc import TaskGroup

from tape.telemetry import log
from tape.work.deadline import END_S


class Workers:
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
            log.warning("worker.handlers_left", count=len(self._scopes))

    def _ended(self, task: "asyncio.Task[None]") -> None:
        del self._scopes[task]
        if not task.cancelled() and (error := task.exception()) is not None:
            self._group.start_soon(_raise, error)


async def _within(scope: anyio.CancelScope, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    with scope:
        await work()


async def _raise(error: BaseException) -> NoReturn:
    raise error

"""Runs loops for as long as a block lasts."""

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, NoReturn

import anyio


@asynccontextmanager
async def background(*loops: Callable[[], Coroutine[Any, Any, NoReturn]]) -> AsyncIterator[None]:
    """Starts loops and cancels them at the end of the block; the block's own error is not put into a group."""
    failure: BaseException | None = None
    async with anyio.create_task_group() as tasks:
        for loop in loops:
            tasks.start_soon(loop)
        try:
            yield
        except (Exception, KeyboardInterrupt, SystemExit) as error:  # noqa: BLE001 - it is the block's, raised below
            failure = error
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure

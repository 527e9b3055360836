"""Calling what users wrote, async or plain, under the key of what it does."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from functools import partial
from typing import Any, Final

import anyio

from tape.sdk.durable.errors import AckLost
from tape.work.deadline import DEADLINE, exceeded
from tape.work.threads import call_in_thread

_KEY: Final[ContextVar[str]] = ContextVar("tape_idempotency_key", default="")


def idempotency_key() -> str:
    """The key of the effect that takes place now, for whoever must recognise it when it is asked for again."""
    return _KEY.get()


@contextmanager
def with_key(key: str) -> Iterator[None]:
    """What runs in this block, in threads that it starts too, does so under a key."""
    token = _KEY.set(key)
    try:
        yield
    finally:
        _KEY.reset(token)


async def call_function(function: Callable[[], Any], deadline: timedelta = DEADLINE) -> Any:
    """What a function returns, be it async or plain; a plain one runs in a thread.

    Of one that takes longer than its deadline nobody knows whether it has done its work.
    """
    inner = function.func if isinstance(function, partial) else function
    with anyio.move_on_after(deadline.total_seconds()):
        if inspect.iscoroutinefunction(inner):
            return await awaited(function())
        return await call_in_thread(function, None, {"function": getattr(inner, "__qualname__", "")})
    raise AckLost(str(exceeded(deadline)))


async def awaited(call: Awaitable[Any]) -> Any:
    """What a call returns or raises; a cancellation that it has dealt with ends nothing around it.

    An `asyncio.TaskGroup` cancels its own task when one of its tasks fails, and before Python 3.13 leaves that counted:
    the next scope of anyio would take it for a cancellation from outside.
    """
    task = asyncio.current_task()
    before = 0 if task is None else task.cancelling()
    try:
        return await call
    except asyncio.CancelledError:
        before = 0 if task is None else task.cancelling()
        raise
    finally:
        while task is not None and task.cancelling() > before:
            task.uncancel()

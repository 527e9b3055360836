"""Calls users' functions, async or plain, with an idempotency key."""

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
    """The idempotency key of the effect that is executing now."""
    return _KEY.get()


@contextmanager
def with_key(key: str) -> Iterator[None]:
    """Sets the idempotency key for this block and the threads it starts."""
    token = _KEY.set(key)
    try:
        yield
    finally:
        _KEY.reset(token)


async def call_function(function: Callable[[], Any], deadline: timedelta = DEADLINE) -> Any:
    """The result of an async or plain function; a plain one runs in a thread.

    Raises AckLost after the deadline, because the function may still have completed.
    """
    inner = function.func if isinstance(function, partial) else function
    with anyio.move_on_after(deadline.total_seconds()):
        if inspect.iscoroutinefunction(inner):
            return await awaited(function())
        return await call_in_thread(function, None, {"function": getattr(inner, "__qualname__", "")})
    raise AckLost(str(exceeded(deadline)))


async def awaited(call: Awaitable[Any]) -> Any:
    """The result of a call; a cancellation that the call has handled does not reach the scopes around it.

    An `asyncio.TaskGroup` cancels its own task when one of its tasks fails, and before Python 3.13 leaves that counted:
    the next anyio scope would take it for a cancellation from outside.
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

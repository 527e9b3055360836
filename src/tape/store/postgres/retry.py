"""Repeats an attempt once when its connection was lost."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from tape.store.postgres.errors import LOST

T = TypeVar("T")


async def with_retry(attempt: Callable[[], Awaitable[T]], drop_idle: Callable[[], Awaitable[None]]) -> T:
    """Runs an attempt; if its connection was lost, drops the idle ones, which may be lost too, and runs it again."""
    try:
        return await attempt()
    except TimeoutError:
        raise
    except LOST:
        await drop_idle()
        return await attempt()

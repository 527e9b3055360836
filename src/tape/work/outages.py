"""Outages of a store: long-running programs retry for as long as the outage takes.

The delay doubles from 200 ms to 5 s, with a random factor of 0.5 to 1. An outage is logged when it begins and ends.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from datetime import timedelta
from random import random
from typing import Final, TypeVar

import anyio

from tape.core.errors import TapeError, Unavailable
from tape.telemetry import log

FIRST: Final = timedelta(milliseconds=200)
LONGEST: Final = timedelta(seconds=5)

_MAX_DOUBLINGS: Final = 30  # a timedelta overflows long before an int does

T = TypeVar("T")


class Outage:
    """The consecutive failures of one component that needs a store."""

    def __init__(self, component: str, jitter: Callable[[], float] = random) -> None:
        self._component = component
        self._jitter = jitter
        self._failures = 0

    async def wait(self, error: TapeError) -> None:
        """Waits before the next attempt."""
        await anyio.sleep(self.failed(error).total_seconds())

    def failed(self, error: TapeError) -> timedelta:
        """Records a failure; returns how long to wait before the next attempt."""
        if self._failures == 0:
            log.warning("store.unavailable", component=self._component, reason=str(error))
        delay = self._delay()
        self._failures += 1
        return delay

    def recovered(self) -> None:
        """Records a success, which ends the outage."""
        if self._failures:
            log.info("store.recovered", component=self._component, attempts=self._failures)
            self._failures = 0

    def _delay(self) -> timedelta:
        doubled: timedelta = FIRST * (1 << min(self._failures, _MAX_DOUBLINGS))
        return min(doubled, LONGEST) * (0.5 + self._jitter() / 2)


async def retry_outages(work: Callable[[Outage], Awaitable[T]], component: str) -> T:
    """Calls `work` until it returns, again after each outage; `work` calls `recovered` when it makes progress."""
    outage = Outage(component)
    while True:
        try:
            return await work(outage)
        except (Unavailable, ExceptionGroup) as error:
            away = _unavailable(error)
            if away is None:
                raise
            await outage.wait(away)


@asynccontextmanager
async def open_when_available(make: Callable[[], AbstractAsyncContextManager[T]], component: str) -> AsyncIterator[T]:
    """Opens something as soon as its store is available; raises any other error at once."""

    async def entered(outage: Outage) -> T:
        found = await stack.enter_async_context(make())
        outage.recovered()
        return found

    async with AsyncExitStack() as stack:
        yield await retry_outages(entered, component)


def _unavailable(error: BaseException) -> Unavailable | None:
    """The outage that caused an error; of a group of errors, each must be an outage."""
    if isinstance(error, Unavailable):
        return error
    found = [_unavailable(part) for part in error.exceptions] if isinstance(error, BaseExceptionGroup) else [None]
    return found[0] if all(found) else None

"""Retries of a tool."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from random import uniform
from typing import Final, TypeVar

import anyio

from tape.core.errors import UsageError
from tape.core.retry import backoff
from tape.sdk.durable.errors import AckLost, StepRefused

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """A number of attempts with a doubling delay, for some types of errors and never for others."""

    attempts: int = 3
    base: timedelta = timedelta(seconds=1)
    retry_on: tuple[type[Exception], ...] = (Exception,)
    never: tuple[type[Exception], ...] = ()

    def __post_init__(self) -> None:
        if type(self.attempts) is not int or self.attempts < 1:
            raise UsageError(f"attempts must be at least 1, not {self.attempts}")

    def is_worth(self, error: Exception, attempt: int) -> bool:
        """Whether to try again; a call that may have happened is not repeated."""
        is_kind = isinstance(error, self.retry_on) and not isinstance(error, (*self.never, AckLost, StepRefused))
        return is_kind and attempt < self.attempts


ONCE: Final = Retries(attempts=1)


async def retried(policy: Retries, call: Callable[[], Awaitable[T]]) -> T:
    """The first successful result, or the last error."""
    attempt = 1
    while True:
        try:
            return await call()
        except Exception as error:
            if not policy.is_worth(error, attempt):
                raise
        await anyio.sleep(backoff(attempt, policy.base, uniform(-1, 1)).total_seconds())
        attempt += 1

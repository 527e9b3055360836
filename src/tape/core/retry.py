"""The delay before a failed attempt is retried."""

from datetime import timedelta
from typing import Final

CAP: Final = timedelta(hours=1)
JITTER: Final = 0.1

_MAX_DOUBLINGS: Final = 30


def backoff(attempts: int, base: timedelta, jitter: float) -> timedelta:
    """The base delay, doubled for each attempt after the first, at most CAP.

    `jitter` is from -1 to 1 and changes the delay by up to 10 %.
    """
    doublings = min(max(attempts - 1, 0), _MAX_DOUBLINGS)  # a timedelta overflows long before an int does
    return min(base * (1 << doublings), CAP) * (1 + JITTER * jitter)


def is_last(attempts: int, retry_max: int, dlq_after_n: int) -> bool:
    """Whether no attempts are left."""
    return attempts >= min(retry_max + 1, dlq_after_n)

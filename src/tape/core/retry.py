"""When a failed piece of work is tried again."""

from datetime import timedelta
from typing import Final

CAP: Final = timedelta(hours=1)
JITTER: Final = 0.1

_MOST_DOUBLINGS: Final = 30


def backoff(attempts: int, base: timedelta, jitter: float) -> timedelta:
    """How long to wait after so many attempts: the base, doubled for each but the first, never more than the cap.

    The jitter is from -1 to 1 and moves it by a tenth either way.
    """
    doublings = min(max(attempts - 1, 0), _MOST_DOUBLINGS)  # a timedelta overflows long before an int does
    return min(base * (1 << doublings), CAP) * (1 + JITTER * jitter)


def is_last(attempts: int, retry_max: int, dlq_after_n: int) -> bool:
    """Whether no attempt may follow so many."""
    return attempts >= min(retry_max + 1, dlq_after_n)

"""Deadlines of attempts: what takes longer is cancelled, and left to itself if it goes on all the same."""

from datetime import timedelta
from typing import Final

from tape.core.errors import UsageError
from tape.core.reaction import TIMEOUT_MS

DEADLINE: Final = timedelta(milliseconds=TIMEOUT_MS)
LONGEST: Final = timedelta(days=7)
END_S: Final = 5.0  # what a cancelled handler has to end


def check_deadline(deadline: timedelta | float) -> timedelta:
    """A deadline of an attempt; a bare number counts seconds."""
    given = deadline if isinstance(deadline, timedelta) else timedelta(seconds=deadline)
    if not timedelta(0) < given <= LONGEST:
        raise UsageError(f"a deadline is more than nothing and at most {LONGEST.days} days, not {given}")
    return given


def exceeded(deadline: timedelta) -> TimeoutError:
    """Why an attempt has failed that was cancelled at its deadline."""
    return TimeoutError(f"it took longer than its deadline of {deadline.total_seconds():g} s")

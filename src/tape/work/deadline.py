"""The deadline of an attempt. An attempt that takes longer is cancelled and has failed."""

from datetime import timedelta
from typing import Final

from tape.core.errors import UsageError
from tape.core.reaction import TIMEOUT_MS

DEADLINE: Final = timedelta(milliseconds=TIMEOUT_MS)
LEAST: Final = timedelta.resolution
LONGEST: Final = timedelta(days=7)
END_S: Final = 5.0  # in which a cancelled handler has to end


def check_deadline(deadline: timedelta | float) -> timedelta:
    """Validates a deadline; a bare number is in seconds."""
    is_number = isinstance(deadline, int | float) and not isinstance(deadline, bool)
    if not is_number and not isinstance(deadline, timedelta):
        raise UsageError(f"a deadline is a timedelta or a number of seconds, not {deadline!r}")
    seconds = deadline.total_seconds() if isinstance(deadline, timedelta) else deadline
    if not LEAST.total_seconds() <= seconds <= LONGEST.total_seconds():
        raise UsageError(f"a deadline is more than nothing and at most {LONGEST.days} days, not {deadline}")
    return deadline if isinstance(deadline, timedelta) else timedelta(seconds=deadline)


def exceeded(deadline: timedelta) -> TimeoutError:
    """The error of an attempt that was cancelled at its deadline."""
    return TimeoutError(f"it took longer than its deadline of {deadline.total_seconds():g} s")

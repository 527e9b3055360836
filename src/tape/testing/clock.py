"""A clock that only the test moves."""

from datetime import UTC, datetime, timedelta
from typing import Final

from tape.core.errors import UsageError

START: Final = datetime(2030, 1, 1, tzinfo=UTC)

_MS: Final = timedelta(milliseconds=1)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Clock:
    """A store's clock. It never goes back."""

    def __init__(self, start: datetime = START) -> None:
        if start.tzinfo is None:
            raise UsageError("a clock starts at a time with a time zone, such as datetime(2030, 1, 1, tzinfo=UTC)")
        self._ms = (start - _EPOCH) // _MS

    @property
    def now(self) -> datetime:
        return _EPOCH + self._ms * _MS

    def now_ms(self) -> int:
        """Milliseconds since 1970."""
        return self._ms

    def advance(self, by: timedelta) -> datetime:
        """Moves the clock; what becomes due waits until the test runs it."""
        if by < timedelta(0):
            raise UsageError(f"a clock goes forward, not by {by}")
        self._ms += by // _MS
        return self.now

"""Time that passes when a test says so, and not by itself."""

from datetime import UTC, datetime, timedelta
from typing import Final

from tape.core.errors import UsageError

START: Final = datetime(2030, 1, 1, tzinfo=UTC)

_MS: Final = timedelta(milliseconds=1)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Clock:
    """A store's clock. It never goes back, as positions must not."""

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
        """Lets time pass; what falls due meanwhile waits for somebody to look."""
        if by < timedelta(0):
            raise UsageError(f"a clock goes forward, not by {by}")
        self._ms += by // _MS
        return self.now

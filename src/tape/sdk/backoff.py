"""How long a reader stays away before it asks again."""

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

RETRY: Final = timedelta(seconds=1)
CAP: Final = timedelta(seconds=30)

_MAX_DOUBLINGS: Final = 30  # a timedelta overflows long before an int does


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Doubles what the server asked for with every failure in a row, and adds up to a half so that readers spread."""

    retry: timedelta = RETRY
    cap: timedelta = CAP
    failures: int = 0

    def failed(self) -> "Backoff":
        return replace(self, failures=self.failures + 1)

    def succeeded(self) -> "Backoff":
        return replace(self, failures=0) if self.failures else self

    def asked(self, retry_ms: int | None) -> "Backoff":
        """The same, at the pace that the server asked for, if it did."""
        return self if retry_ms is None else replace(self, retry=timedelta(milliseconds=retry_ms))

    def delay(self, jitter: float, at_least: timedelta = timedelta(0)) -> timedelta:
        """How long to wait, never less than the server asked for."""
        grown = min(self.cap, self.retry * (1 << min(self.failures, _MAX_DOUBLINGS)))
        return max(self.retry, grown, at_least) * (1 + jitter / 2)

"""The delay before a reader reconnects."""

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

RETRY: Final = timedelta(seconds=1)
CAP: Final = timedelta(seconds=30)

_MAX_DOUBLINGS: Final = 30  # a timedelta overflows long before an int does


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Doubles the server's retry delay with each consecutive failure, plus up to a half as jitter."""

    retry: timedelta = RETRY
    cap: timedelta = CAP
    failures: int = 0

    def failed(self) -> "Backoff":
        return replace(self, failures=self.failures + 1)

    def succeeded(self) -> "Backoff":
        return replace(self, failures=0) if self.failures else self

    def with_retry(self, retry_ms: int | None) -> "Backoff":
        """With the retry delay that the server sent, if it sent one."""
        return self if retry_ms is None else replace(self, retry=timedelta(milliseconds=retry_ms))

    def delay(self, jitter: float, at_least: timedelta = timedelta(0)) -> timedelta:
        """The delay, never shorter than the server asked for."""
        grown = min(self.cap, self.retry * (1 << min(self.failures, _MAX_DOUBLINGS)))
        return max(self.retry, grown, at_least) * (1 + jitter / 2)

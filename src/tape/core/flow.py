"""Back-pressure of a live reader: it is warned once per episode, and evicted above a cap."""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, TypeAlias

from tape.core.errors import InvalidMaxQueued, UsageError

DEFAULT_MAX_QUEUED: Final = 256
MIN_MAX_QUEUED: Final = 16
MAX_MAX_QUEUED: Final = 2048
DEFAULT_MAX_BYTES: Final = 2 * 1024 * 1024


class Threshold(StrEnum):
    """Which cap a reader is close to."""

    FRAMES = "frames"
    BYTES = "bytes"
    FRAMES_AND_BYTES = "frames_and_bytes"


class EvictReason(StrEnum):
    """Which cap a reader has exceeded."""

    QUEUE_OVERFLOW = "queue_overflow"
    QUEUE_BYTES_OVERFLOW = "queue_bytes_overflow"


@dataclass(frozen=True, slots=True)
class Steady:
    """No action."""


@dataclass(frozen=True, slots=True)
class Warn:
    """Send the reader a warning."""

    threshold: Threshold


@dataclass(frozen=True, slots=True)
class Evict:
    """End the stream, or let the reader lag if it asked for that."""

    reason: EvictReason


FlowAction: TypeAlias = Steady | Warn | Evict

_STEADY: Final = Steady()


def check_max_queued(asked: int) -> int:
    """Returns a client's cap if it is within the allowed range."""
    if not MIN_MAX_QUEUED <= asked <= MAX_MAX_QUEUED:
        raise InvalidMaxQueued(f"maxQueued must be {MIN_MAX_QUEUED} to {MAX_MAX_QUEUED:,}, not {asked}")
    return asked


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """A live reader's caps, and whether it was warned in this episode.

    It is warned at 75 % of either cap, and again only after both fell to 37.5 %. A backlog equal to a cap is allowed,
    and so is a single entry of any size, because nothing smaller could be sent.
    """

    max_queued: int = DEFAULT_MAX_QUEUED
    max_bytes: int = DEFAULT_MAX_BYTES
    is_warned: bool = False

    def __post_init__(self) -> None:
        if self.max_queued < 1 or self.max_bytes < 1:
            raise UsageError(f"caps are at least 1, not {self.max_queued} entries and {self.max_bytes} bytes")

    def observe(self, entries: int, size: int) -> tuple["Flow", FlowAction]:
        """The action for a live backlog of this size, and the next state."""
        if reason := self._overflow(entries, size):
            return self, Evict(reason)
        threshold = self._threshold(entries, size)
        if threshold and not self.is_warned:
            return replace(self, is_warned=True), Warn(threshold)
        if self.is_warned and self._is_calm(entries, size):
            return replace(self, is_warned=False), _STEADY
        return self, _STEADY

    def _overflow(self, entries: int, size: int) -> EvictReason | None:
        if entries > self.max_queued:
            return EvictReason.QUEUE_OVERFLOW
        if size > self.max_bytes and entries > 1:
            return EvictReason.QUEUE_BYTES_OVERFLOW
        return None

    def _threshold(self, entries: int, size: int) -> Threshold | None:
        is_many, is_big = 4 * entries >= 3 * self.max_queued, 4 * size >= 3 * self.max_bytes
        if is_many and is_big:
            return Threshold.FRAMES_AND_BYTES
        if is_many:
            return Threshold.FRAMES
        return Threshold.BYTES if is_big else None

    def _is_calm(self, entries: int, size: int) -> bool:
        return 8 * entries <= 3 * self.max_queued and 8 * size <= 3 * self.max_bytes

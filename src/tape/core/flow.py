"""How far behind a live reader may fall: warned once per episode, evicted beyond a cap."""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, TypeAlias

from tape.core.errors import InvalidMaxQueued, UsageError

DEFAULT_MAX_QUEUED: Final = 256
MIN_MAX_QUEUED: Final = 16
MAX_MAX_QUEUED: Final = 2048
DEFAULT_MAX_BYTES: Final = 2 * 1024 * 1024


class Threshold(StrEnum):
    """Which cap a reader has come close to."""

    FRAMES = "frames"
    BYTES = "bytes"
    FRAMES_AND_BYTES = "frames_and_bytes"


class EvictReason(StrEnum):
    """Which cap a reader has gone beyond."""

    QUEUE_OVERFLOW = "queue_overflow"
    QUEUE_BYTES_OVERFLOW = "queue_bytes_overflow"


@dataclass(frozen=True, slots=True)
class Steady:
    """Nothing to say."""


@dataclass(frozen=True, slots=True)
class Warn:
    """Tell the reader that it is slow."""

    threshold: Threshold


@dataclass(frozen=True, slots=True)
class Evict:
    """End the stream, or let the reader lag, as it asked."""

    reason: EvictReason


FlowAction: TypeAlias = Steady | Warn | Evict

_STEADY: Final = Steady()


def check_max_queued(asked: int) -> int:
    """The cap a client asks for, if it is one that clients may have."""
    if not MIN_MAX_QUEUED <= asked <= MAX_MAX_QUEUED:
        raise InvalidMaxQueued(f"maxQueued must be {MIN_MAX_QUEUED} to {MAX_MAX_QUEUED:,}, not {asked}")
    return asked


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """A live reader's caps, and whether it has been warned in this episode.

    A warning comes at 75 % of either cap, and the next one only after both were down to 37.5 %. A backlog at a cap is
    still within it, and so is a single entry of any size: nothing smaller could be sent instead.
    """

    max_queued: int = DEFAULT_MAX_QUEUED
    max_bytes: int = DEFAULT_MAX_BYTES
    is_warned: bool = False

    def __post_init__(self) -> None:
        if self.max_queued < 1 or self.max_bytes < 1:
            raise UsageError(f"caps are at least 1, not {self.max_queued} entries and {self.max_bytes} bytes")

    def observe(self, entries: int, size: int) -> tuple["Flow", FlowAction]:
        """What to do about a live backlog of so many entries and bytes, and the state from which to go on."""
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

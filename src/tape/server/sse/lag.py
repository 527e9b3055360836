"""Watching how far a live reader is behind: it is warned once an episode, and evicted if it stays beyond a cap."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from tape.core.flow import Evict, EvictReason, Flow, Threshold, Warn

GRACE_S: Final = 1.0


class LagMonitor:
    """One reader's flow; without one it may lag, and is only warned."""

    def __init__(
        self, flow: Flow | None, warn: Callable[[Flow, Threshold], None], evict: Callable[[EvictReason], None]
    ) -> None:
        self._flow = flow or Flow()
        self._may_lag = flow is None
        self._warn = warn
        self._evict = evict
        self._grace: asyncio.TimerHandle | None = None

    @property
    def is_warned(self) -> bool:
        return self._flow.is_warned

    @property
    def is_beyond(self) -> bool:
        """Whether the reader was beyond a cap when it was last looked at."""
        return self._grace is not None

    def observe(self, lag: tuple[int, int], judge: Callable[[], None]) -> None:
        """Who is beyond a cap is judged a moment later: one append can put every healthy reader there."""
        self._flow, signal = self._flow.observe(*lag)
        if isinstance(signal, Evict):
            if not self._flow.is_warned:
                self._flow = replace(self._flow, is_warned=True)
                self._warn(self._flow, _THRESHOLDS[signal.reason])
            if self._grace is None and not self._may_lag:
                self._grace = asyncio.get_running_loop().call_later(GRACE_S, judge)
        else:
            self.forget()
        if isinstance(signal, Warn):
            self._warn(self._flow, signal.threshold)

    def judge(self, lag: tuple[int, int]) -> None:
        self._grace = None
        _, signal = self._flow.observe(*lag)
        if isinstance(signal, Evict):
            self._evict(signal.reason)

    def forget(self) -> None:
        """Lets the reader off."""
        if self._grace is not None:
            self._grace.cancel()
            self._grace = None


_THRESHOLDS: Final = {EvictReason.QUEUE_OVERFLOW: Threshold.FRAMES, EvictReason.QUEUE_BYTES_OVERFLOW: Threshold.BYTES}

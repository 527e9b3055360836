"""Monitors how far a live reader is behind: warns it once an episode, evicts it if it stays beyond a cap."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from tape.core.flow import Evict, EvictReason, Flow, Threshold, Warn

GRACE_S: Final = 1.0


class LagMonitor:
    """Applies one reader's flow to its lag in entries and bytes; a reader without a flow is only warned."""

    def __init__(
        self,
        flow: Flow | None,
        lag: Callable[[], tuple[int, int]],
        on_warn: Callable[[Flow, Threshold], None],
        on_evict: Callable[[EvictReason], None],
    ) -> None:
        self._flow = flow or Flow()
        self._may_lag = flow is None
        self._lag = lag
        self._on_warn = on_warn
        self._on_evict = on_evict
        self._grace: asyncio.TimerHandle | None = None

    @property
    def is_warned(self) -> bool:
        return self._flow.is_warned

    def observe(self) -> None:
        """A reader beyond a cap gets a grace period: one large append can put every healthy reader there."""
        self._flow, action = self._flow.observe(*self._lag())
        if isinstance(action, Evict):
            if not self._flow.is_warned:
                self._flow = replace(self._flow, is_warned=True)
                self._on_warn(self._flow, _THRESHOLDS[action.reason])
            if self._grace is None and not self._may_lag:
                self._grace = asyncio.get_running_loop().call_later(GRACE_S, self.end_grace)
        else:
            self.stop()
        if isinstance(action, Warn):
            self._on_warn(self._flow, action.threshold)

    def end_grace(self) -> None:
        """Evicts a reader in its grace period if it is still beyond a cap."""
        if self._grace is None:
            return
        self.stop()
        _, action = self._flow.observe(*self._lag())
        if isinstance(action, Evict):
            self._on_evict(action.reason)

    def stop(self) -> None:
        """Ends the grace period without a verdict."""
        if self._grace is not None:
            self._grace.cancel()
            self._grace = None


_THRESHOLDS: Final = {EvictReason.QUEUE_OVERFLOW: Threshold.FRAMES, EvictReason.QUEUE_BYTES_OVERFLOW: Threshold.BYTES}

"""Percentiles of one measurement a turn: the rows of p50 and p99 share it."""

from collections.abc import Callable, Sequence
from functools import partial
from statistics import median, quantiles

from tests.bench.compare import Side


class Latencies:
    """Measures when a percentile is first asked for in a turn, and again in the next turn."""

    def __init__(self, measure: Callable[[], Sequence[float]]) -> None:
        self._measure = measure
        self._waiting: dict[int, float] = {}
        self._sides = {percent: partial(self._percentile, percent) for percent in (50, 99)}

    def at(self, percent: int) -> Side:
        """Milliseconds; the same side for the same percentile."""
        return self._sides[percent]

    def _percentile(self, percent: int) -> float:
        if percent not in self._waiting:
            found = sorted(self._measure())
            cuts = quantiles(found, n=100, method="inclusive") if len(found) > 1 else found * 99
            self._waiting = {50: median(found) * 1e3, 99: cuts[98] * 1e3}
        return self._waiting.pop(percent)

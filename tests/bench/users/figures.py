"""Several figures of one measurement: the rows of a rate, of p50 and of p99 share what takes seconds to start."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from statistics import median, quantiles

from tests.bench.compare import Side


class Figures:
    """Measures when a figure is first asked for in a turn, and again in the next turn."""

    def __init__(self, measure: Callable[[], Mapping[str, float]]) -> None:
        self._measure = measure
        self._waiting: dict[str, float] = {}
        self._sides: dict[str, Side] = {}

    def side(self, name: str) -> Side:
        """The same side for the same figure."""
        return self._sides.setdefault(name, partial(self._figure, name))

    def _figure(self, name: str) -> float:
        if name not in self._waiting:
            self._waiting = dict(self._measure())
        return self._waiting.pop(name)


def percentiles(seconds: Sequence[float]) -> dict[str, float]:
    """In milliseconds."""
    cuts = quantiles(seconds, n=100, method="inclusive") if len(seconds) > 1 else [*seconds] * 99
    return {"p50": median(seconds) * 1e3, "p99": cuts[98] * 1e3}

"""What a judge finds."""

from collections.abc import Sequence
from typing import NamedTuple


class Anomaly(NamedTuple):
    """A sentence that contradicts an invariant, and the lines of the history that prove it."""

    invariant: str
    sentence: str
    lines: tuple[int, ...]


class InvariantResult(NamedTuple):
    """How many facts were judged, and what was wrong."""

    judged: int
    anomalies: Sequence[Anomaly] = ()


NOTHING = InvariantResult(0)

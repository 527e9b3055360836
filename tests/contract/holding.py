"""Whether a history of claims could have happened one after the other."""

from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple


class Holding(NamedTuple):
    """That an owner was given something, and until when, by the clock of the store."""

    owner: str
    attempt: int
    from_ms: int
    until_ms: int


def clashes(history: Iterable[Holding]) -> list[tuple[Holding, Holding]]:
    """Those who held it at one time, or in another order than their attempts say."""
    ordered = sorted(history, key=lambda holding: holding.attempt)
    return [
        (one, other) for one, other in pairwise(ordered) if other.from_ms < one.until_ms or one.attempt == other.attempt
    ]

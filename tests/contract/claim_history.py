"""Checks that the claims in a history did not overlap."""

from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple


class ClaimSpan(NamedTuple):
    """The time in which an owner held a claim, by the clock of the store."""

    owner: str
    attempt: int
    from_ms: int
    until_ms: int


def overlaps(history: Iterable[ClaimSpan]) -> list[tuple[ClaimSpan, ClaimSpan]]:
    """Pairs of claims that overlap, or whose order differs from that of their attempts."""
    ordered = sorted(history, key=lambda span: span.attempt)
    return [
        (one, other) for one, other in pairwise(ordered) if other.from_ms < one.until_ms or one.attempt == other.attempt
    ]

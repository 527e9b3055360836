"""First attempts of one owner that are settled together, as columns: reaction by reaction, in the order of places."""

from collections.abc import Sequence
from itertools import chain
from typing import Final, NamedTuple

from tape.core.task import Claim

DIGITS: Final = 15  # of a place in the name of a task


class FirstAttempts(NamedTuple):
    """Whose they are, with what the names of each reaction's begin, how many those are, and their places."""

    owner: str
    prefixes: list[str]
    sizes: list[int]
    places: list[int]


def first_attempts(claims: Sequence[Claim]) -> FirstAttempts | None:
    """The claims as columns; None when they have several owners, are no first attempts, or name no task."""
    owner = claims[0].owner
    found: dict[str, list[int]] = {}
    for task_id, whose, attempt in claims:
        prefix, _, place = task_id.partition(".")
        if attempt != 1 or whose != owner or len(place) != DIGITS or not (place.isascii() and place.isdecimal()):
            return None
        found.setdefault(prefix, []).append(int(place))
    groups = [sorted(set(places)) for places in found.values()]
    return FirstAttempts(owner, list(found), [len(group) for group in groups], list(chain.from_iterable(groups)))

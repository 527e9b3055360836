"""First attempts of one owner as columns for tape_finish: reaction by reaction, in the order of positions."""

from collections.abc import Sequence
from itertools import chain
from typing import Final, NamedTuple

from tape.core.task import TaskClaim

DIGITS: Final = 15  # of the position in a task id


class FirstAttempts(NamedTuple):
    """For each reaction the prefix of its task ids and the number of its tasks; the positions of all of them."""

    owner: str
    prefixes: list[str]
    sizes: list[int]
    positions: list[int]


def first_attempts(claims: Sequence[TaskClaim]) -> FirstAttempts | None:
    """None if the claims have several owners, or one is not a first attempt or names no task."""
    owner = claims[0].owner
    found: dict[str, list[int]] = {}
    for task_id, claim_owner, attempt in claims:
        prefix, _, position = task_id.partition(".")
        if (
            attempt != 1
            or claim_owner != owner
            or len(position) != DIGITS
            or not (position.isascii() and position.isdecimal())
        ):
            return None
        found.setdefault(prefix, []).append(int(position))
    groups = [sorted(set(positions)) for positions in found.values()]
    return FirstAttempts(owner, list(found), [len(group) for group in groups], list(chain.from_iterable(groups)))

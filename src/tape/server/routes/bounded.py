"""As much of a list as one answer carries: 4 MiB, counted as the answer writes it."""

from collections.abc import Iterable
from typing import TypeVar

import msgspec

from tape.core.page import ANSWER_BYTES, fit_answer

T = TypeVar("T")


def fit(items: Iterable[T]) -> list[T]:
    """The first items that fit into an answer; at least one, whatever its size."""
    return fit_answer(items, json_size)


def fit_beside(items: Iterable[T], others: object) -> list[T]:
    """The first items that fit into an answer with others, which may be none."""
    room = ANSWER_BYTES - json_size(others)
    carried = fit_answer(items, json_size, room)
    return carried if sum(map(json_size, carried)) <= room else []


def json_size(item: object) -> int:
    return len(msgspec.json.encode(item)) + 1

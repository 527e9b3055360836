"""Pagination: how many bytes one answer carries, and the cursor of the next page."""

import json
from collections.abc import Callable, Iterable
from typing import Final, TypeAlias, TypeVar

from tape.core.errors import InvalidCursor, quoted

ANSWER_BYTES: Final = (4 << 20) - (64 << 10)  # the default message limit of gRPC clients is 4 MiB
MAX_CURSOR: Final = 4_096
POSITIONS: Final = range(-(1 << 63), 1 << 63)  # the integers that a store can compare

PagePosition: TypeAlias = tuple[int | str, ...]

T = TypeVar("T")


def fit_answer(items: Iterable[T], size: Callable[[T], int], max_bytes: int = ANSWER_BYTES) -> list[T]:
    """The first items that fit into one answer; at least one, whatever its size."""
    taken: list[T] = []
    for item in items:
        max_bytes -= size(item)
        if taken and max_bytes < 0:
            break
        taken.append(item)
    return taken


def encode_cursor(place: PagePosition) -> str:
    """The cursor for a position in a list, which the caller sends back unchanged."""
    return json.dumps(place, separators=(",", ":"))


def decode_cursor(cursor: str, *kinds: type) -> PagePosition | None:
    """The position in a cursor, checked against these types; an empty cursor is the start."""
    if not cursor:
        return None
    try:
        place = json.loads(cursor) if len(cursor) <= MAX_CURSOR else None
    except (ValueError, RecursionError):
        place = None
    if not isinstance(place, list) or [type(part) for part in place] != list(kinds) or not _is_within(place):
        raise InvalidCursor(f"a cursor is the next_cursor of an answer to the same question, not {quoted(cursor)}")
    return tuple(place)


def _is_within(place: list[int | str]) -> bool:
    return all(part in POSITIONS for part in place if isinstance(part, int))

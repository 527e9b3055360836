"""Pages of lists: how many bytes one answer carries, and where the next one goes on."""

import json
from collections.abc import Callable, Iterable
from typing import Final, TypeAlias, TypeVar

from tape.core.errors import InvalidCursor, quoted

ANSWER_BYTES: Final = (4 << 20) - (64 << 10)  # a gRPC client accepts messages of 4 MiB unless it is told otherwise
MAX_CURSOR: Final = 4_096
POSITIONS: Final = range(-(1 << 63), 1 << 63)  # what a store can compare with

PagePosition: TypeAlias = tuple[int | str, ...]

T = TypeVar("T")


def fit_answer(items: Iterable[T], size: Callable[[T], int], max_bytes: int = ANSWER_BYTES) -> list[T]:
    """The first items that fit into an answer together; one at least, whatever its size."""
    taken: list[T] = []
    for item in items:
        max_bytes -= size(item)
        if taken and max_bytes < 0:
            break
        taken.append(item)
    return taken


def encode_cursor(place: PagePosition) -> str:
    """A place in the order of a list, as a text for the caller to send back."""
    return json.dumps(place, separators=(",", ":"))


def decode_cursor(cursor: str, *kinds: type) -> PagePosition | None:
    """The place that a cursor names, which has values of these kinds; an empty cursor is the beginning."""
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

"""Pagination: how many bytes one answer carries, and the cursor of the next page."""

import json
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeAlias, TypeVar
from zlib import crc32

from tape.core.errors import InvalidCursor, quoted
from tape.core.text import replace_unstorable

ANSWER_BYTES: Final = (4 << 20) - (64 << 10)  # the default message limit of gRPC clients is 4 MiB
MAX_CURSOR: Final = 4_096
_CHECKSUM: Final = 4
POSITIONS: Final = range(-(1 << 63), 1 << 63)  # the integers that a store can compare

PagePosition: TypeAlias = tuple[int | str, ...]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A part of a list; the next one begins at `next_cursor`, which is empty after the last."""

    rows: Sequence[T]
    next_cursor: str = ""


def fit_answer(items: Iterable[T], size: Callable[[T], int], max_bytes: int = ANSWER_BYTES) -> list[T]:
    """The first items that fit into one answer; at least one, whatever its size."""
    taken: list[T] = []
    for item in items:
        max_bytes -= size(item)
        if taken and max_bytes < 0:
            break
        taken.append(item)
    return taken


def fit_beside(items: Iterable[T], size: Callable[[T], int], others: int) -> list[T]:
    """The first items that fit into one answer beside so many bytes; it may be none."""
    room, taken = ANSWER_BYTES - others, []
    for item in items:
        room -= size(item)
        if room < 0:
            break
        taken.append(item)
    return taken


def encode_cursor(place: PagePosition, question: str = "") -> str:
    """The cursor for a position in the answer to a question, which the caller sends back unchanged."""
    text = json.dumps(place, separators=(",", ":"))
    return urlsafe_b64encode(_checksum(text, question) + text.encode()).decode().rstrip("=")


def decode_cursor(cursor: str, *kinds: type, question: str = "") -> PagePosition | None:
    """The position in a cursor of the same question, checked against these types; an empty cursor is the start."""
    if not cursor:
        return None
    try:
        place = json.loads(_text(cursor, question))
    except (ValueError, RecursionError):
        place = None
    if not isinstance(place, list) or [type(part) for part in place] != list(kinds) or not _is_within(place):
        raise InvalidCursor(f"a cursor is the next_cursor of an answer to the same question, not {quoted(cursor)}")
    return tuple(place)


def _text(cursor: str, question: str) -> str:
    if len(cursor) > MAX_CURSOR:
        raise ValueError("too long")
    stored = b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4), b"-_", validate=True)
    text = stored[_CHECKSUM:].decode()
    if stored[:_CHECKSUM] != _checksum(text, question):
        raise ValueError("damaged, or of another question")
    return text


def _checksum(text: str, question: str) -> bytes:
    return crc32(f"{question}{text}".encode()).to_bytes(_CHECKSUM, "big")


def _is_within(place: list[int | str]) -> bool:
    return all(part in POSITIONS if isinstance(part, int) else part == replace_unstorable(part) for part in place)

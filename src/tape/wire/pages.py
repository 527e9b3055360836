"""Lists as answers that every gRPC client accepts: a page of them, and the cursor of the rest."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

from google.protobuf.message import Message

from tape.core.page import PagePosition, decode_cursor, encode_cursor, fit_answer

T = TypeVar("T")
M = TypeVar("M", bound=Message)

FRAME: Final = 8  # bytes that an item of a list takes beside itself


def page(
    items: Iterable[T], place: Callable[[T], PagePosition], message: Callable[[T], M], cursor: str
) -> tuple[Sequence[M], str]:
    """The items behind a cursor that one answer carries, in the order of their places, and the cursor of the rest."""
    ordered = sorted(items, key=place)
    after = decode_cursor(cursor, *map(type, place(ordered[0]))) if ordered else None
    rest = ordered if after is None else [item for item in ordered if place(item) > after]
    carried = first(map(message, rest))
    return carried, encode_cursor(place(rest[len(carried) - 1])) if len(carried) < len(rest) else ""


def first(messages: Iterable[M]) -> list[M]:
    """As many messages as fit into an answer."""
    return fit_answer(messages, size)


def size(message: Message) -> int:
    return message.ByteSize() + FRAME

"""The messages that the requests of a version of tape.proto consist of, by name, with the names of their fields."""

from collections.abc import Iterable, Mapping
from typing import Any


def messages_of(requests: Iterable[Any]) -> Mapping[str, frozenset[str]]:
    """The messages of requests and those inside them, from their descriptors."""
    known: dict[str, frozenset[str]] = {}
    waiting = list(requests)
    while waiting:
        message = waiting.pop()
        if message.name not in known:
            known[message.name] = frozenset(message.fields_by_name)
            waiting += [field.message_type for field in message.fields if field.message_type is not None]
    return known

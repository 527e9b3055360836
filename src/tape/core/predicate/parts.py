"""Splits a predicate into parts and evaluates each of them for one entry."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from tape.core.errors import UsageError
from tape.core.predicate.ast import Comprehension, Const, Expression, Ident, Select, children
from tape.core.predicate.predicate import Activation, Predicate, evaluated
from tape.core.predicate.text import CONTAINER, text_of

MAX_S: Final = 0.25
MAX_TEXT: Final = 200


@dataclass(frozen=True, slots=True)
class Part:
    """A part's position in the text, and its value in CEL or its error."""

    position: str
    text: str
    value: str | None
    error: str | None = None


def parts(predicate: Predicate, activation: Activation) -> list[Part]:
    """Each part that has a value of its own, the whole predicate first; after a slow part the others are skipped."""
    if predicate.expression is None:
        return []
    until = time.perf_counter() + MAX_S
    return [_asked(node, activation, until) for node in _telling(predicate.expression)]


def _telling(node: Expression) -> Iterator[Expression]:
    """The nodes to report: no literals, no variable that only leads to a field, nothing inside a loop."""
    if not isinstance(node, Const):
        yield node
    below = (node.range,) if isinstance(node, Comprehension) else children(node)
    for child in below:
        if not _is_way(node, child):
            yield from _telling(child)


def _is_way(node: Expression, child: Expression) -> bool:
    is_type = isinstance(child, Ident) and not child.name.startswith(CONTAINER)
    return is_type or (isinstance(node, Select) and isinstance(child, Ident | Select))


def _asked(node: Expression, activation: Activation, until: float) -> Part:
    text = text_of(node)
    if time.perf_counter() > until:
        return Part(node.position, text, None, "not asked: what was asked before has taken too long")
    try:
        value, error = evaluated(text, activation)
    except UsageError as refused:  # the whole is within the limits, but this part cannot stand alone
        return Part(node.position, text, None, str(refused))
    return Part(node.position, text, None if error else _shown(value), error)


def _shown(value: object) -> str:
    match value:
        case None | bool() | int() | float() | str():
            text = json.dumps(value, ensure_ascii=False)
        case timedelta():
            text = f"{value.total_seconds():g}s"
        case _:
            text = str(value)
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"

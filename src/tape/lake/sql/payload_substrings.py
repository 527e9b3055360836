"""Substrings that a payload's text must contain for a condition to hold, so that Spark need not parse the others.

This relies on the compact JSON of `codec.encode`: each value directly follows its key.
"""

import re
from collections.abc import Iterator
from typing import Final

from tape.core.predicate.ast import Call, Comprehension, Const, Expression, Ident, Literal, Select

MOST: Final = 4
BOUND: Final = 10**9  # a smaller whole number has the same first digits as an int and as a double

_LENIENT: Final = frozenset({"_&&_", "_||_", "_?_:_", "@not_strictly_false"})
_is_plain = re.compile(r"[A-Za-z0-9 _.,:@+-]*").fullmatch  # characters that JSON writers never escape


def substrings(condition: Expression) -> tuple[str, ...]:
    """Substrings of the payload of every entry for which the condition is true; the longest ones only."""
    longest: list[str] = []
    for substring in sorted(_at_top(condition), key=len, reverse=True):
        if not any(substring in each for each in longest):
            longest.append(substring)
    return tuple(longest[:MOST])


def _at_top(node: Expression) -> Iterator[str]:
    if isinstance(node, Select):
        yield from _pair(node, None if node.is_test else True)
    if isinstance(node, Call) and node.function == "_==_":
        for side, other in (node.operands, node.operands[::-1]):
            if isinstance(other, Const):
                yield from _pair(side, other.value)
    yield from _within(node)


def _within(node: Expression) -> Iterator[str]:
    """A selection fails without its key, so it needs the key; `has` needs only its operand."""
    match node:
        case Select():
            if not node.is_test:
                yield from _pair(node, None)
            yield from _within(node.operand)
        case Call() if node.function not in _LENIENT:
            for operand in node.operands:
                yield from _within(operand)
        case Comprehension():
            yield from _within(node.range)
        case _:
            return


def _pair(node: Expression, value: Literal) -> Iterator[str]:
    """A key of the payload, with its value if the value has only one JSON text."""
    if isinstance(node, Select) and _is_of_payload(node) and _is_plain(node.field):
        yield f'"{node.field}":{_written(value)}'


def _is_of_payload(node: Expression) -> bool:
    if isinstance(node, Select):
        return _is_of_payload(node.operand)
    return isinstance(node, Ident) and node.name == "entry.payload"


def _written(value: Literal) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str() if _is_plain(value):
            return f'"{value}"'
        case int() if 0 < value < BOUND:
            return str(value)
        case _:
            return ""

"""What the text of a payload has to contain for a condition to hold, so that Spark need not parse the others.

This rests on stored text being what `codec.encode` writes: compact, each key with its value right behind it.
"""

import re
from collections.abc import Iterator
from typing import Final

from tape.core.predicate.ast import Call, Comprehension, Const, Expression, Ident, Literal, Select

MOST: Final = 4
BOUND: Final = 10**9  # below it a whole number begins with the same digits, whether it is an int or a double

_LENIENT: Final = frozenset({"_&&_", "_||_", "_?_:_", "@not_strictly_false"})
_is_plain = re.compile(r"[A-Za-z0-9 _.,:@+-]*").fullmatch  # what no writer of JSON escapes


def substrings(condition: Expression) -> tuple[str, ...]:
    """Texts that are all in the payload of every entry for which the condition is true; the longest say most."""
    longest: list[str] = []
    for needle in sorted(_at_top(condition), key=len, reverse=True):
        if not any(needle in each for each in longest):
            longest.append(needle)
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
    """Whatever is an error without a key needs the key; `has` needs only what it looks into."""
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
    """A key of the payload, and where it is certain how that is written its value."""
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

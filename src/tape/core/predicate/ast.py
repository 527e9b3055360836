"""The checked syntax tree of a predicate, as plain values."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import assert_never

Literal = bool | int | float | str | bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """Every node has its `line:column` in the text and its type (`dyn` when the checker cannot know it)."""

    position: str
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Const(Node):
    value: Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Ident(Node):
    """A variable: `entry.<name>` is the entry's, a name without a dot belongs to a comprehension."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Select(Node):
    """`operand.field`, or `has(operand.field)` when it is only a test."""

    operand: "Expression"
    field: str
    is_test: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Node):
    """A function or operator (`_==_`, `@in`, `_?_:_`); the receiver of a method is its first operand."""

    function: str
    operands: "tuple[Expression, ...]"
    overloads: tuple[str, ...]
    is_method: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateList(Node):
    elements: "tuple[Expression, ...]"


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateMap(Node):
    entries: "tuple[tuple[Expression, Expression], ...]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comprehension(Node):
    """What the macros all, exists, exists_one, map and filter become."""

    variable: str
    range: "Expression"
    accumulator: str
    start: "Expression"
    condition: "Expression"
    step: "Expression"
    result: "Expression"

    @property
    def body(self) -> "tuple[Expression, ...]":
        """What runs for every element."""
        return self.condition, self.step


Expression = Const | Ident | Select | Call | CreateList | CreateMap | Comprehension


def children(node: Expression) -> "tuple[Expression, ...]":
    """The nodes directly below."""
    match node:
        case Const() | Ident():
            return ()
        case Select():
            return (node.operand,)
        case Call():
            return node.operands
        case CreateList():
            return node.elements
        case CreateMap():
            return tuple(part for entry in node.entries for part in entry)
        case Comprehension():
            return node.range, node.start, *node.body, node.result
    assert_never(node)


def descend(node: Expression) -> Iterator[Expression]:
    """A node and all nodes below it."""
    yield node
    for child in children(node):
        yield from descend(child)

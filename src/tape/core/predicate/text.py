"""Writes a checked syntax tree as CEL text, so that each part of a predicate can be shown and evaluated."""

import json
from typing import Final, assert_never

from tape.core.predicate.ast import (
    Call,
    Comprehension,
    Const,
    CreateList,
    CreateMap,
    Expression,
    Ident,
    Select,
)

CONTAINER: Final = "entry."
_BETWEEN: Final = {
    f"_{sign}_": sign for sign in ("&&", "||", "==", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "%")
}
_BETWEEN_ALL: Final = _BETWEEN | {"@in": "in"}
_BEFORE: Final = {"!_": "!", "-_": "-"}


def text_of(node: Expression) -> str:
    """Text that compiles to this node; macros are written as macros."""
    match node:
        case Const():
            return _literal(node)
        case Ident():
            return node.name.removeprefix(CONTAINER)
        case Select():
            path = f"{_tight(node.operand)}.{node.field}"
            return f"has({path})" if node.is_test else path
        case Call():
            return _call(node)
        case CreateList():
            return f"[{', '.join(map(text_of, node.elements))}]"
        case CreateMap():
            return "{" + ", ".join(f"{text_of(key)}: {text_of(value)}" for key, value in node.entries) + "}"
        case Comprehension():
            return _macro(node)
    assert_never(node)


def _literal(const: Const) -> str:
    value = const.value
    if isinstance(value, bytes):
        return "b'" + "".join(f"\\x{byte:02x}" for byte in value) + "'"
    if isinstance(value, float):
        return f'double("{value!r}")' if value != value or value in (float("inf"), -float("inf")) else repr(value)
    return json.dumps(value, ensure_ascii=False) + ("u" if const.type == "uint" else "")


def _call(call: Call) -> str:
    operands = call.operands
    if call.function in _BETWEEN_ALL:
        return f"{_tight(operands[0])} {_BETWEEN_ALL[call.function]} {_tight(operands[1])}"
    if call.function in _BEFORE:
        return _BEFORE[call.function] + _tight(operands[0])
    if call.function == "_?_:_":
        return " ".join((_tight(operands[0]), "?", _tight(operands[1]), ":", _tight(operands[2])))
    if call.function == "_[_]":
        return f"{_tight(operands[0])}[{text_of(operands[1])}]"
    if call.is_method:
        return f"{_tight(operands[0])}.{call.function}({', '.join(map(text_of, operands[1:]))})"
    return f"{call.function}({', '.join(map(text_of, operands))})"


def _tight(node: Expression) -> str:
    """The text as an operand, in parentheses if it binds less tightly than a dot."""
    is_loose = isinstance(node, Call) and (node.function in _BETWEEN_ALL or node.function in (*_BEFORE, "_?_:_"))
    is_negative = isinstance(node, Const) and not isinstance(node.value, str) and text_of(node).startswith("-")
    return f"({text_of(node)})" if is_loose or is_negative else text_of(node)


def _macro(loop: Comprehension) -> str:
    """The macros that a predicate may use; each has its condition in another place of the step."""
    step = loop.step
    assert isinstance(step, Call)
    name, condition = {
        "_&&_": ("all", step.operands[-1]),
        "_||_": ("exists", step.operands[-1]),
        "_?_:_": ("exists_one", step.operands[0]),
    }[step.function]
    return f"{_tight(loop.range)}.{name}({loop.variable}, {text_of(condition)})"

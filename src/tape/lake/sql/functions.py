"""Functions and operators of CEL in Spark SQL, each with the evaluator's own errors."""

from collections.abc import Callable, Mapping
from typing import Final

from tape.lake.sql.regex import to_java
from tape.lake.sql.text import NULL, call, case, cast, chain, infix, is_among, literal, try_cast
from tape.lake.sql.types import (
    DOUBLE_SHAPES,
    LIST_SHAPE,
    MAP_SHAPE,
    Kind,
    NotCompiled,
    Value,
    as_list,
    as_map,
    assume,
    boolean,
    has_shape,
    is_a,
    narrow,
)

LEAST: Final = -(2**63)
BOUND: Final = 2.0**63

_SPACE: Final = "\t\n\v\f\r "
_IS_INT: Final = r"\A[+-]?[0-9]+\z"
_IS_DECIMAL: Final = r"\A[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\z"
_IS_PERHAPS_DOUBLE: Final = "[xXnN]"  # hexadecimal, inf and nan, which the evaluator takes too
_TRUE: Final = ("true", "True", "TRUE", "t", "1")
_FALSE: Final = ("false", "False", "FALSE", "f", "0")
_OPERATORS: Final = {"_+_": "+", "_-_": "-", "_*_": "*"}
_ANY_INT: Final = "DECIMAL(19,0)"


def arithmetic(function: str, kind: Kind, left: Value, right: Value) -> Value:
    """`+ - * / %` of two operands that have to be of one kind."""
    left, right = narrow(left, kind), narrow(right, kind)
    if kind is Kind.INT:
        return Value(kind=kind, text=_whole(function, left, right)).given(left, right)
    if kind is Kind.DOUBLE:
        return Value(kind=kind, text=_floating(function, left, right), can_be_nan=True).given(left, right)
    if kind is Kind.STRING and function == "_+_":
        return Value(kind=kind, text=call("concat", left.text, right.text)).given(left, right)
    raise NotCompiled(f"{function} of {kind.name.lower()}s")


def _whole(function: str, left: Value, right: Value) -> str:
    if function in _OPERATORS:
        return _exactly(left.text, _OPERATORS[function], right.text)
    operator, opposite = "DIV", _exactly(literal(0), "-", left.text)
    if function == "_%_":
        operator, opposite = "%", case((infix(left.text, ">", literal(LEAST)), literal(0)))
    return case(
        (infix(right.text, "=", literal(0)), NULL),
        (infix(right.text, "=", literal(-1)), opposite),
        otherwise=infix(left.text, operator, right.text),
    )


def _exactly(left: str, operator: str, right: str) -> str:
    """In decimals, which hold any result: Spark would reorder `try_add`s of ints, and overflow where CEL does not."""
    return try_cast(infix(cast(left, _ANY_INT), operator, cast(right, _ANY_INT)), "BIGINT")


def _floating(function: str, left: Value, right: Value) -> str:
    if function in _OPERATORS:
        return infix(left.text, _OPERATORS[function], right.text)
    if function == "_/_" and right.is_nonzero:
        return infix(left.text, "/", right.text)
    raise NotCompiled("a double may be divided by -0.0, which Spark cannot tell from 0.0")


def opposite(value: Value) -> Value:
    if value.kind is Kind.INT:
        return Value(kind=Kind.INT, text=_exactly(literal(0), "-", value.text)).given(value)
    if value.kind is Kind.DOUBLE:
        text = call("negative", value.text)
        return Value(kind=Kind.DOUBLE, text=text, can_be_nan=value.can_be_nan).given(value)
    raise NotCompiled("the opposite of what may be an int or a double")


def search(function: str, text: Value, part: Value) -> Value:
    """`startsWith`, `endsWith` and `contains`, byte by byte as in CEL."""
    text, part = narrow(text, Kind.STRING), narrow(part, Kind.STRING)
    return boolean(call(function.lower(), text.text, part.text), text, part)


def matches(text: Value, pattern: str) -> Value:
    text = narrow(text, Kind.STRING)
    return boolean(call("rlike", text.text, literal(to_java(pattern))), text)


def size(value: Value) -> Value:
    """Characters of a text, elements of a list, keys of a map."""
    if value.kind is not Kind.ANY:
        return Value(kind=Kind.INT, text=_length(narrow(value, Kind.STRING).text)).given(value)
    text = case(
        (is_a(value, Kind.STRING), _length(assume(value, Kind.STRING).text)),
        (has_shape(value, LIST_SHAPE), cast(call("size", as_list(value)), "BIGINT")),
        (has_shape(value, MAP_SHAPE), cast(call("size", as_map(value)), "BIGINT")),
    )
    return Value(kind=Kind.INT, text=text).given(value)


def _length(text: str) -> str:
    return cast(call("char_length", text), "BIGINT")


def convert(function: str, value: Value) -> Value:
    """`int`, `double`, `string` or `bool` of a value; which kinds it may be of decides what can be said."""
    target, ways = _CONVERSIONS[function]
    if value.kind is not Kind.ANY:
        if value.kind not in ways:
            raise NotCompiled(f"{function}() of {value.kind.name.lower()}")
        text = ways[value.kind](value)
    else:
        text = case(*((is_a(value, kind), way(assume(value, kind))) for kind, way in ways.items()))
    converted = Value(kind=target, text=text, can_be_nan=value.can_be_nan and target is Kind.DOUBLE).given(value)
    return _doubted(function, converted, value)


def _doubted(function: str, converted: Value, value: Value) -> Value:
    if function == "string" and value.kind is Kind.ANY:
        return converted.when(has_shape(value, *DOUBLE_SHAPES))
    if function == "double" and value.kind in (Kind.ANY, Kind.STRING):
        suspicious = call("rlike", assume(value, Kind.STRING).text, literal(_IS_PERHAPS_DOUBLE))
        is_text = [is_a(value, Kind.STRING)] if value.kind is Kind.ANY else []
        return converted.when(chain("AND", *is_text, suspicious))
    return converted


def _same(value: Value) -> str:
    return value.text


def _int_of_double(value: Value) -> str:
    inside = chain("AND", infix(value.text, ">", literal(-BOUND)), infix(value.text, "<", literal(BOUND)))
    return case((inside, cast(value.text, "BIGINT")))


def _parsed(shape: str, kind: str) -> Callable[[Value], str]:
    def parse(value: Value) -> str:
        trimmed = call("btrim", value.text, literal(_SPACE))
        return case((call("rlike", trimmed, literal(shape)), try_cast(trimmed, kind)))

    return parse


def _bool_of_text(value: Value) -> str:
    return case(
        (is_among(value.text, *map(literal, _TRUE)), literal(True)),
        (is_among(value.text, *map(literal, _FALSE)), literal(False)),
    )


def _cast_to(kind: str) -> Callable[[Value], str]:
    return lambda value: cast(value.text, kind)


_CONVERSIONS: Final[Mapping[str, tuple[Kind, Mapping[Kind, Callable[[Value], str]]]]] = {
    "int": (
        Kind.INT,
        {
            Kind.INT: _same,
            Kind.DOUBLE: _int_of_double,
            Kind.STRING: _parsed(_IS_INT, "BIGINT"),
            Kind.BOOL: _cast_to("BIGINT"),
        },
    ),
    "double": (
        Kind.DOUBLE,
        {Kind.DOUBLE: _same, Kind.INT: _cast_to("DOUBLE"), Kind.STRING: _parsed(_IS_DECIMAL, "DOUBLE")},
    ),
    "string": (Kind.STRING, {Kind.STRING: _same, Kind.INT: _cast_to("STRING"), Kind.BOOL: _cast_to("STRING")}),
    "bool": (Kind.BOOL, {Kind.BOOL: _same, Kind.STRING: _bool_of_text}),
}
CONVERSIONS: Final = frozenset(_CONVERSIONS)

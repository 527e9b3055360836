"""Functions and operators of CEL in Spark SQL, each with the evaluator's own errors."""

from collections.abc import Callable, Mapping
from typing import Final

from tape.lake.sql.regex import to_java
from tape.lake.sql.text import NULL, call, case, cast, chain, infix, is_among, literal, try_cast
from tape.lake.sql.types import (
    DOUBLE_SHAPES,
    LIST_SHAPE,
    MAP_SHAPE,
    NotCompiled,
    SqlType,
    SqlValue,
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
_IS_PERHAPS_DOUBLE: Final = "[xXnN]"  # hexadecimal, inf and nan, which the evaluator accepts too
_TRUE: Final = ("true", "True", "TRUE", "t", "1")
_FALSE: Final = ("false", "False", "FALSE", "f", "0")
_OPERATORS: Final = {"_+_": "+", "_-_": "-", "_*_": "*"}
_ANY_INT: Final = "DECIMAL(19,0)"


def arithmetic(function: str, kind: SqlType, left: SqlValue, right: SqlValue) -> SqlValue:
    """`+ - * / %` of two operands of the same type."""
    left, right = narrow(left, kind), narrow(right, kind)
    if kind is SqlType.INT:
        return SqlValue(kind=kind, text=_whole(function, left, right)).given(left, right)
    if kind is SqlType.DOUBLE:
        return SqlValue(kind=kind, text=_floating(function, left, right), can_be_nan=True).given(left, right)
    if kind is SqlType.STRING and function == "_+_":
        return SqlValue(kind=kind, text=call("concat", left.text, right.text)).given(left, right)
    raise NotCompiled(f"{function} of {kind.name.lower()}s")


def _whole(function: str, left: SqlValue, right: SqlValue) -> str:
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
    """Computes in decimals, which hold any sum: Spark reorders `try_add`s of ints and overflows where CEL does not."""
    return try_cast(infix(cast(left, _ANY_INT), operator, cast(right, _ANY_INT)), "BIGINT")


def _floating(function: str, left: SqlValue, right: SqlValue) -> str:
    if function in _OPERATORS:
        return infix(left.text, _OPERATORS[function], right.text)
    if function == "_/_" and right.is_nonzero:
        return infix(left.text, "/", right.text)
    raise NotCompiled("a double may be divided by -0.0, which Spark cannot tell from 0.0")


def opposite(value: SqlValue) -> SqlValue:
    if value.kind is SqlType.INT:
        return SqlValue(kind=SqlType.INT, text=_exactly(literal(0), "-", value.text)).given(value)
    if value.kind is SqlType.DOUBLE:
        text = call("negative", value.text)
        return SqlValue(kind=SqlType.DOUBLE, text=text, can_be_nan=value.can_be_nan).given(value)
    raise NotCompiled("the opposite of what may be an int or a double")


def search(function: str, text: SqlValue, part: SqlValue) -> SqlValue:
    """`startsWith`, `endsWith` and `contains`, byte by byte as in CEL."""
    text, part = narrow(text, SqlType.STRING), narrow(part, SqlType.STRING)
    return boolean(call(function.lower(), text.text, part.text), text, part)


def matches(text: SqlValue, pattern: str) -> SqlValue:
    text = narrow(text, SqlType.STRING)
    return boolean(call("rlike", text.text, literal(to_java(pattern))), text)


def size(value: SqlValue) -> SqlValue:
    """Characters of a text, elements of a list, keys of a map."""
    if value.kind is not SqlType.ANY:
        return SqlValue(kind=SqlType.INT, text=_length(narrow(value, SqlType.STRING).text)).given(value)
    text = case(
        (is_a(value, SqlType.STRING), _length(assume(value, SqlType.STRING).text)),
        (has_shape(value, LIST_SHAPE), cast(call("size", as_list(value)), "BIGINT")),
        (has_shape(value, MAP_SHAPE), cast(call("size", as_map(value)), "BIGINT")),
    )
    return SqlValue(kind=SqlType.INT, text=text).given(value)


def _length(text: str) -> str:
    return cast(call("char_length", text), "BIGINT")


def convert(function: str, value: SqlValue) -> SqlValue:
    """`int`, `double`, `string` or `bool` of a value, by the types that the value may have."""
    target, ways = _CONVERSIONS[function]
    if value.kind is not SqlType.ANY:
        if value.kind not in ways:
            raise NotCompiled(f"{function}() of {value.kind.name.lower()}")
        text = ways[value.kind](value)
    else:
        text = case(*((is_a(value, kind), way(assume(value, kind))) for kind, way in ways.items()))
    converted = SqlValue(kind=target, text=text, can_be_nan=value.can_be_nan and target is SqlType.DOUBLE).given(value)
    return _doubted(function, converted, value)


def _doubted(function: str, converted: SqlValue, value: SqlValue) -> SqlValue:
    if function == "string" and value.kind is SqlType.ANY:
        return converted.when(has_shape(value, *DOUBLE_SHAPES))
    if function == "double" and value.kind in (SqlType.ANY, SqlType.STRING):
        suspicious = call("rlike", assume(value, SqlType.STRING).text, literal(_IS_PERHAPS_DOUBLE))
        is_text = [is_a(value, SqlType.STRING)] if value.kind is SqlType.ANY else []
        return converted.when(chain("AND", *is_text, suspicious))
    return converted


def _same(value: SqlValue) -> str:
    return value.text


def _int_of_double(value: SqlValue) -> str:
    inside = chain("AND", infix(value.text, ">", literal(-BOUND)), infix(value.text, "<", literal(BOUND)))
    return case((inside, cast(value.text, "BIGINT")))


def _parsed(shape: str, kind: str) -> Callable[[SqlValue], str]:
    def parse(value: SqlValue) -> str:
        trimmed = call("btrim", value.text, literal(_SPACE))
        return case((call("rlike", trimmed, literal(shape)), try_cast(trimmed, kind)))

    return parse


def _bool_of_text(value: SqlValue) -> str:
    return case(
        (is_among(value.text, *map(literal, _TRUE)), literal(True)),
        (is_among(value.text, *map(literal, _FALSE)), literal(False)),
    )


def _cast_to(kind: str) -> Callable[[SqlValue], str]:
    return lambda value: cast(value.text, kind)


_CONVERSIONS: Final[Mapping[str, tuple[SqlType, Mapping[SqlType, Callable[[SqlValue], str]]]]] = {
    "int": (
        SqlType.INT,
        {
            SqlType.INT: _same,
            SqlType.DOUBLE: _int_of_double,
            SqlType.STRING: _parsed(_IS_INT, "BIGINT"),
            SqlType.BOOL: _cast_to("BIGINT"),
        },
    ),
    "double": (
        SqlType.DOUBLE,
        {SqlType.DOUBLE: _same, SqlType.INT: _cast_to("DOUBLE"), SqlType.STRING: _parsed(_IS_DECIMAL, "DOUBLE")},
    ),
    "string": (
        SqlType.STRING,
        {SqlType.STRING: _same, SqlType.INT: _cast_to("STRING"), SqlType.BOOL: _cast_to("STRING")},
    ),
    "bool": (SqlType.BOOL, {SqlType.BOOL: _same, SqlType.STRING: _bool_of_text}),
}
CONVERSIONS: Final = frozenset(_CONVERSIONS)

"""Typed Spark SQL expressions of predicates: an error is NULL, a part of the payload is a VARIANT, no coercion.

Where Spark may differ from the evaluator, a value has a doubt: a condition under which the evaluator decides.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from tape.core.errors import UsageError
from tape.lake.sql.text import call, case, cast, chain, infix, is_among, is_known, is_null, literal, negate

SHAPE: Final = 3  # the first letters of a type's name identify it: DECIMAL(4,1) is DEC
DOUBLE_SHAPES: Final = ("DOU", "DEC")
LIST_SHAPE: Final = "ARR"
MAP_SHAPE: Final = "OBJ"


class NotCompiled(UsageError):
    """A part of a predicate for which Spark SQL may not give the evaluator's result."""


class SqlType(Enum):
    """The type of a value, by its name in Spark; ANY is known at run time only."""

    BOOL = "BOOLEAN"
    INT = "BIGINT"
    DOUBLE = "DOUBLE"
    STRING = "STRING"
    NULL = "VOID"
    ANY = "VARIANT"

    @property
    def shapes(self) -> tuple[str, ...]:
        """The types that a VARIANT of this kind may have: JSON's 1.5 is a DECIMAL."""
        return DOUBLE_SHAPES if self is SqlType.DOUBLE else (self.value[:SHAPE],)


NUMBERS: Final = (SqlType.INT, SqlType.DOUBLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlValue:
    """A SQL expression that is NULL where the evaluator has an error."""

    kind: SqlType
    text: str
    doubts: tuple[str, ...] = ()
    can_fail: bool = True
    can_be_nan: bool = False
    is_nonzero: bool = False
    root: str = ""
    path: str = "$"

    def given(self, *others: SqlValue) -> SqlValue:
        """Adds the doubts of the operands."""
        doubts = dict.fromkeys([*self.doubts, *(doubt for other in others for doubt in other.doubts)])
        return replace(self, doubts=tuple(doubts))

    def when(self, doubt: str) -> SqlValue:
        return replace(self, doubts=(*self.doubts, doubt))


def any_value(root: str, path: str = "$", *, can_fail: bool = True) -> SqlValue:
    """A VARIANT, or its value at a path."""
    text = root if path == "$" else call("try_variant_get", root, literal(path), "'variant'")
    return SqlValue(kind=SqlType.ANY, text=text, root=root, path=path, can_fail=can_fail)


def boolean(text: str, *parts: SqlValue) -> SqlValue:
    return SqlValue(kind=SqlType.BOOL, text=text).given(*parts)


def shape(value: SqlValue) -> str:
    """The first letters of the type's name; NULL for an error."""
    return call("left", call("schema_of_variant", value.text), str(SHAPE))


def has_shape(value: SqlValue, *shapes: str) -> str:
    if len(shapes) == 1:
        return infix(shape(value), "=", literal(shapes[0]))
    return is_among(shape(value), *map(literal, shapes))


def is_a(value: SqlValue, *kinds: SqlType) -> str:
    return has_shape(value, *(each for kind in kinds for each in kind.shapes))


def read(value: SqlValue, kind: str) -> str:
    """The value of a VARIANT that has this type."""
    return call("try_variant_get", value.root, literal(value.path), literal(kind))


def as_list(value: SqlValue) -> str:
    """The value as a container; NULL if it is of another type."""
    return read(value, "array<variant>")


def as_map(value: SqlValue) -> str:
    """The value as a container; NULL if it is of another type."""
    return read(value, "map<string,variant>")


def narrow(value: SqlValue, kind: SqlType) -> SqlValue:
    """Converts a value to a type that it has or may have at run time; otherwise it is NULL or NotCompiled."""
    if value.kind is kind:
        return value
    if value.kind is not SqlType.ANY or kind is SqlType.NULL:
        raise NotCompiled(f"{value.kind.name.lower()} where {kind.name.lower()} is required")
    return SqlValue(kind=kind, text=case((is_a(value, kind), read(value, kind.value.lower())))).given(value)


def assume(value: SqlValue, kind: SqlType) -> SqlValue:
    """Reads a value as a type that an enclosing branch has checked."""
    return (
        SqlValue(kind=kind, text=read(value, kind.value.lower()), can_fail=False)
        if value.kind is SqlType.ANY
        else value
    )


def double_of(value: SqlValue) -> str:
    """A number as a double, rounded as the evaluator rounds when it compares an int with a double."""
    if value.kind is SqlType.ANY:
        return read(value, "double")
    return value.text if value.kind is SqlType.DOUBLE else cast(value.text, "DOUBLE")


def equal(left: SqlValue, right: SqlValue) -> SqlValue:
    """CEL's equality: numbers by value, otherwise false where types differ."""
    if left.kind is not SqlType.ANY and right.kind is SqlType.ANY:
        left, right = right, left
    if left.kind is not SqlType.ANY:
        return boolean(_equal_known(left, right), left, right)
    if right.kind is SqlType.ANY:
        return boolean(_equal_any(left, right), left, right).when(_both_contain(left, right))
    return boolean(_equal_either(left, right), left, right)


def _equal_known(left: SqlValue, right: SqlValue) -> str:
    if left.kind is right.kind is SqlType.NULL:
        return literal(True)
    if left.kind is right.kind and left.kind is not SqlType.DOUBLE:
        return infix(left.text, "=", right.text)
    if {left.kind, right.kind} <= {*NUMBERS}:
        return compare_doubles(left, "=", right)
    return _unless_failed(left, right, answer=literal(False))


def _equal_either(left: SqlValue, right: SqlValue) -> str:
    if right.kind is SqlType.NULL:
        return case((is_known(left.text), call("is_variant_null", left.text)))
    false = _unless_failed(left, right, answer=literal(False))
    if right.kind not in NUMBERS:
        same = infix(read(left, right.kind.value.lower()), "=", right.text)
        return case((is_a(left, right.kind), same), otherwise=false)
    return case(*_number_branches(left, "=", right), otherwise=false)


def _equal_any(left: SqlValue, right: SqlValue) -> str:
    same = infix(shape(left), "=", shape(right))
    return case(
        (chain("OR", is_null(left.text), is_null(right.text)), "NULL"),
        *_same_kind_branches(left, "=", right),
        (negate(same), literal(False)),
        (has_shape(left, *SqlType.NULL.shapes), literal(True)),
    )


def _both_contain(left: SqlValue, right: SqlValue) -> str:
    return chain("AND", has_shape(left, LIST_SHAPE, MAP_SHAPE), infix(shape(left), "=", shape(right)))


def order(left: SqlValue, operator: str, right: SqlValue) -> SqlValue:
    """CEL's `<` and its relatives: numbers among themselves, otherwise equal types only."""
    if left.kind is SqlType.ANY and right.kind is SqlType.ANY:
        return boolean(case(*_same_kind_branches(left, operator, right)), left, right)
    if left.kind is SqlType.ANY or right.kind is SqlType.ANY:
        return boolean(_order_either(left, operator, right), left, right)
    if {left.kind, right.kind} <= {*NUMBERS} and SqlType.DOUBLE in (left.kind, right.kind):
        return boolean(compare_doubles(left, operator, right), left, right)
    if left.kind is not right.kind or left.kind is SqlType.NULL:
        raise NotCompiled(f"{left.kind.name.lower()} {operator} {right.kind.name.lower()}")
    return boolean(infix(left.text, operator, right.text), left, right)


def _order_either(left: SqlValue, operator: str, right: SqlValue) -> str:
    known = right if left.kind is SqlType.ANY else left
    if known.kind in NUMBERS:
        return case(*_number_branches(left, operator, right))
    return infix(narrow(left, known.kind).text, operator, narrow(right, known.kind).text)


def _number_branches(left: SqlValue, operator: str, right: SqlValue) -> list[tuple[str, str]]:
    """One side is a VARIANT, the other a known number: ints are compared as ints, never by way of a double."""
    unknown, known = (left, right) if left.kind is SqlType.ANY else (right, left)
    if known.kind is SqlType.DOUBLE:
        return [(is_a(unknown, *NUMBERS), compare_doubles(left, operator, right))]
    ints = infix(assume(left, SqlType.INT).text, operator, assume(right, SqlType.INT).text)
    return [(is_a(unknown, SqlType.INT), ints), (is_a(unknown, SqlType.DOUBLE), compare_doubles(left, operator, right))]


def _same_kind_branches(left: SqlValue, operator: str, right: SqlValue) -> list[tuple[str, str]]:
    def both(*kinds: SqlType) -> str:
        return chain("AND", is_a(left, *kinds), is_a(right, *kinds))

    def compared(kind: SqlType) -> tuple[str, str]:
        return both(kind), infix(assume(left, kind).text, operator, assume(right, kind).text)

    numbers = both(*NUMBERS), infix(double_of(left), operator, double_of(right))
    return [compared(SqlType.INT), numbers, compared(SqlType.STRING), compared(SqlType.BOOL)]


def compare_doubles(left: SqlValue, operator: str, right: SqlValue) -> str:
    """Spark holds NaN to be equal to itself and above everything; in CEL no comparison with it is true."""
    compared = infix(double_of(left), operator, double_of(right))
    suspects = [value for value in (left, right) if value.can_be_nan]
    if not suspects:
        return compared
    is_nan = chain("OR", *(call("isnan", value.text) for value in suspects))
    return case((is_nan, _unless_failed(left, right, answer=literal(False))), otherwise=compared)


def _unless_failed(*values: SqlValue, answer: str) -> str:
    fragile = [is_known(value.text) for value in values if value.can_fail]
    return case((chain("AND", *fragile), answer)) if fragile else answer

"""Values of predicates in Spark SQL: an error is NULL, a part of the payload is a VARIANT, and nothing is coerced.

Where Spark cannot tell what the evaluator would say, a value has a doubt: a condition under which it is to be asked.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from tape.core.errors import UsageError
from tape.lake.sql.text import call, case, cast, chain, infix, is_among, is_known, is_null, literal, negate

SHAPE: Final = 3  # so many letters of a type's name tell it from the others: DECIMAL(4,1) is DEC
INT_SHAPE: Final = "BIG"
DOUBLE_SHAPES: Final = ("DOU", "DEC")
LIST_SHAPE: Final = "ARR"
MAP_SHAPE: Final = "OBJ"


class NotCompiled(UsageError):
    """A part of a predicate that Spark SQL would not answer as the evaluator does."""


class Kind(Enum):
    """What is known of a value's type; the value is the name of the type in Spark."""

    BOOL = "BOOLEAN"
    INT = "BIGINT"
    DOUBLE = "DOUBLE"
    STRING = "STRING"
    NULL = "VOID"
    ANY = "VARIANT"

    @property
    def shapes(self) -> tuple[str, ...]:
        """The types that a VARIANT of this kind may have: JSON's 1.5 is a DECIMAL."""
        return DOUBLE_SHAPES if self is Kind.DOUBLE else (self.value[:SHAPE],)


NUMBERS: Final = (Kind.INT, Kind.DOUBLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A piece of SQL that is NULL where the evaluator has an error."""

    kind: Kind
    text: str
    doubts: tuple[str, ...] = ()
    can_fail: bool = True
    can_be_nan: bool = False
    is_nonzero: bool = False
    root: str = ""
    path: str = "$"

    def given(self, *others: Value) -> Value:
        """The same, with the doubts of what it was made from."""
        doubts = dict.fromkeys([*self.doubts, *(doubt for other in others for doubt in other.doubts)])
        return replace(self, doubts=tuple(doubts))

    def when(self, doubt: str) -> Value:
        return replace(self, doubts=(*self.doubts, doubt))


def any_value(root: str, path: str = "$", *, can_fail: bool = True) -> Value:
    """A VARIANT, or what a path leads to in it."""
    text = root if path == "$" else call("try_variant_get", root, literal(path), "'variant'")
    return Value(kind=Kind.ANY, text=text, root=root, path=path, can_fail=can_fail)


def boolean(text: str, *parts: Value) -> Value:
    return Value(kind=Kind.BOOL, text=text).given(*parts)


def shape(value: Value) -> str:
    """The first letters of the type's name; NULL for an error."""
    return call("left", call("schema_of_variant", value.text), str(SHAPE))


def has_shape(value: Value, *shapes: str) -> str:
    if len(shapes) == 1:
        return infix(shape(value), "=", literal(shapes[0]))
    return is_among(shape(value), *map(literal, shapes))


def is_a(value: Value, *kinds: Kind) -> str:
    return has_shape(value, *(each for kind in kinds for each in kind.shapes))


def read(value: Value, kind: str) -> str:
    """What a VARIANT holds, given that it is of this kind."""
    return call("try_variant_get", value.root, literal(value.path), literal(kind))


def as_list(value: Value) -> str:
    """NULL unless it is one."""
    return read(value, "array<variant>")


def as_map(value: Value) -> str:
    """NULL unless it is one."""
    return read(value, "map<string,variant>")


def narrow(value: Value, kind: Kind) -> Value:
    """The value as one of this kind, which it has or may have at run time; anything else is an error."""
    if value.kind is kind:
        return value
    if value.kind is not Kind.ANY or kind is Kind.NULL:
        raise NotCompiled(f"{value.kind.name.lower()} where {kind.name.lower()} is wanted")
    return Value(kind=kind, text=case((is_a(value, kind), read(value, kind.value.lower())))).given(value)


def assume(value: Value, kind: Kind) -> Value:
    """The same where a branch has already made sure of the kind."""
    return Value(kind=kind, text=read(value, kind.value.lower()), can_fail=False) if value.kind is Kind.ANY else value


def double_of(value: Value) -> str:
    """A number as a double, rounded as the evaluator rounds when it compares an int with a double."""
    if value.kind is Kind.ANY:
        return read(value, "double")
    return value.text if value.kind is Kind.DOUBLE else cast(value.text, "DOUBLE")


def equal(left: Value, right: Value) -> Value:
    """CEL's equality: numbers by value, otherwise false where types differ."""
    if left.kind is not Kind.ANY and right.kind is Kind.ANY:
        left, right = right, left
    if left.kind is not Kind.ANY:
        return boolean(_equal_known(left, right), left, right)
    if right.kind is Kind.ANY:
        return boolean(_equal_any(left, right), left, right).when(_both_contain(left, right))
    return boolean(_equal_either(left, right), left, right)


def _equal_known(left: Value, right: Value) -> str:
    if left.kind is right.kind is Kind.NULL:
        return literal(True)
    if left.kind is right.kind and left.kind is not Kind.DOUBLE:
        return infix(left.text, "=", right.text)
    if {left.kind, right.kind} <= {*NUMBERS}:
        return compare_doubles(left, "=", right)
    return _unless_failed(left, right, answer=literal(False))


def _equal_either(left: Value, right: Value) -> str:
    if right.kind is Kind.NULL:
        return case((is_known(left.text), call("is_variant_null", left.text)))
    false = _unless_failed(left, right, answer=literal(False))
    if right.kind not in NUMBERS:
        same = infix(read(left, right.kind.value.lower()), "=", right.text)
        return case((is_a(left, right.kind), same), otherwise=false)
    return case(*_number_branches(left, "=", right), otherwise=false)


def _equal_any(left: Value, right: Value) -> str:
    same = infix(shape(left), "=", shape(right))
    return case(
        (chain("OR", is_null(left.text), is_null(right.text)), "NULL"),
        *_same_kind_branches(left, "=", right),
        (negate(same), literal(False)),
        (has_shape(left, *Kind.NULL.shapes), literal(True)),
    )


def _both_contain(left: Value, right: Value) -> str:
    return chain("AND", has_shape(left, LIST_SHAPE, MAP_SHAPE), infix(shape(left), "=", shape(right)))


def order(left: Value, operator: str, right: Value) -> Value:
    """CEL's `<` and its relatives: numbers among themselves, otherwise equal types only."""
    if left.kind is Kind.ANY and right.kind is Kind.ANY:
        return boolean(case(*_same_kind_branches(left, operator, right)), left, right)
    if left.kind is Kind.ANY or right.kind is Kind.ANY:
        return boolean(_order_either(left, operator, right), left, right)
    if {left.kind, right.kind} <= {*NUMBERS} and Kind.DOUBLE in (left.kind, right.kind):
        return boolean(compare_doubles(left, operator, right), left, right)
    if left.kind is not right.kind or left.kind is Kind.NULL:
        raise NotCompiled(f"{left.kind.name.lower()} {operator} {right.kind.name.lower()}")
    return boolean(infix(left.text, operator, right.text), left, right)


def _order_either(left: Value, operator: str, right: Value) -> str:
    known = right if left.kind is Kind.ANY else left
    if known.kind in NUMBERS:
        return case(*_number_branches(left, operator, right))
    return infix(narrow(left, known.kind).text, operator, narrow(right, known.kind).text)


def _number_branches(left: Value, operator: str, right: Value) -> list[tuple[str, str]]:
    """One side is a VARIANT, the other a known number: ints are compared as ints, never by way of a double."""
    unknown, known = (left, right) if left.kind is Kind.ANY else (right, left)
    if known.kind is Kind.DOUBLE:
        return [(is_a(unknown, *NUMBERS), compare_doubles(left, operator, right))]
    ints = infix(assume(left, Kind.INT).text, operator, assume(right, Kind.INT).text)
    return [(is_a(unknown, Kind.INT), ints), (is_a(unknown, Kind.DOUBLE), compare_doubles(left, operator, right))]


def _same_kind_branches(left: Value, operator: str, right: Value) -> list[tuple[str, str]]:
    def both(*kinds: Kind) -> str:
        return chain("AND", is_a(left, *kinds), is_a(right, *kinds))

    def compared(kind: Kind) -> tuple[str, str]:
        return both(kind), infix(assume(left, kind).text, operator, assume(right, kind).text)

    numbers = both(*NUMBERS), infix(double_of(left), operator, double_of(right))
    return [compared(Kind.INT), numbers, compared(Kind.STRING), compared(Kind.BOOL)]


def compare_doubles(left: Value, operator: str, right: Value) -> str:
    """Spark holds NaN to be equal to itself and above everything; in CEL no comparison with it is true."""
    compared = infix(double_of(left), operator, double_of(right))
    suspects = [value for value in (left, right) if value.can_be_nan]
    if not suspects:
        return compared
    is_nan = chain("OR", *(call("isnan", value.text) for value in suspects))
    return case((is_nan, _unless_failed(left, right, answer=literal(False))), otherwise=compared)


def _unless_failed(*values: Value, answer: str) -> str:
    fragile = [is_known(value.text) for value in values if value.can_fail]
    return case((chain("AND", *fragile), answer)) if fragile else answer

"""Translates Spark's filters into a range of positions and a selection, which the store evaluates."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    StringStartsWith,
)

from tape.store.ranges import EVERYTHING, RangeSelection

LOOKED_UP = ("run_id", "kind", "subject")
MOST = (1 << 63) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PushedFilters:
    """Filters that the store evaluates: positions above `after` up to `through`, and a selection."""

    after: int = 0
    through: int = MOST
    selection: RangeSelection = EVERYTHING

    def above(self, position: int) -> PushedFilters:
        return replace(self, after=max(self.after, position))

    def up_to(self, position: int) -> PushedFilters:
        return replace(self, through=min(self.through, position))


def push_filters(filters: Iterable[Filter]) -> tuple[PushedFilters, list[Filter]]:
    """Splits filters into those that the store evaluates and those that are left to Spark."""
    pushed, left = PushedFilters(), []
    for condition in filters:
        narrowed = _with_filter(pushed, condition)
        if narrowed is None:
            left.append(condition)
        else:
            pushed = narrowed
    return pushed, left


def _with_filter(pushed: PushedFilters, condition: Filter) -> PushedFilters | None:
    path: tuple[str, ...] = getattr(condition, "attribute", ())
    if len(path) != 1:
        return None
    column = path[0]
    if isinstance(condition, IsNotNull):
        return pushed if column in ("global_seq", *LOOKED_UP) else None
    if column == "global_seq":
        return _with_position(pushed, condition)
    return _with_text(pushed, column, condition) if column in LOOKED_UP else None


def _with_position(pushed: PushedFilters, condition: Filter) -> PushedFilters | None:
    position = getattr(condition, "value", None)
    if type(position) is not int:
        return None
    match condition:
        case GreaterThan():
            return pushed.above(position)
        case GreaterThanOrEqual():
            return pushed.above(position - 1)
        case LessThan():
            return pushed.up_to(position - 1)
        case LessThanOrEqual():
            return pushed.up_to(position)
        case EqualTo() | EqualNullSafe():
            return pushed.above(position - 1).up_to(position)
        case _:
            return None


def _with_text(pushed: PushedFilters, column: str, condition: Filter) -> PushedFilters | None:
    if any("\0" in str(value) for value in _values(condition)):
        return None  # SQL cannot contain it; Spark will find no row with it
    match condition:
        case EqualTo(value=str(text)) | EqualNullSafe(value=str(text)):
            values = frozenset({text})
        case In(value=several) if all(isinstance(text, str) for text in several):
            values = frozenset(several)
        case StringStartsWith(value=prefix) if column == "subject" and prefix and prefix.isascii():
            return replace(pushed, selection=pushed.selection.within(*_span(prefix)))
        case _:
            return None
    return replace(pushed, selection=pushed.selection.among(column, values))


def _values(condition: Filter) -> tuple[object, ...]:
    value = getattr(condition, "value", None)
    return tuple(value) if isinstance(value, list | tuple) else (value,)


def _span(prefix: str) -> tuple[str, str]:
    """The bounds [low, high) of all subjects with a prefix; subjects are ASCII, ordered by bytes."""
    return prefix, prefix[:-1] + chr(ord(prefix[-1]) + 1)

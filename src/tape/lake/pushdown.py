"""What Spark asks for, as far as the journal can answer it better."""

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

from tape.store.ranges import EVERYTHING, Selection

LOOKED_UP = ("run_id", "kind", "subject")
MOST = (1 << 63) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PushedFilters:
    """Positions above `after` and up to `through`, and which entries of them."""

    after: int = 0
    through: int = MOST
    selection: Selection = EVERYTHING

    def above(self, position: int) -> PushedFilters:
        return replace(self, after=max(self.after, position))

    def up_to(self, position: int) -> PushedFilters:
        return replace(self, through=min(self.through, position))


def push_filters(filters: Iterable[Filter]) -> tuple[PushedFilters, list[Filter]]:
    """What is asked, and the filters that are left to Spark."""
    asked, left = PushedFilters(), []
    for each in filters:
        answered = _with_filter(asked, each)
        if answered is None:
            left.append(each)
        else:
            asked = answered
    return asked, left


def _with_filter(asked: PushedFilters, each: Filter) -> PushedFilters | None:
    path: tuple[str, ...] = getattr(each, "attribute", ())
    if len(path) != 1:
        return None
    column = path[0]
    if isinstance(each, IsNotNull):
        return asked if column in ("global_seq", *LOOKED_UP) else None
    if column == "global_seq":
        return _with_position(asked, each)
    return _with_text(asked, column, each) if column in LOOKED_UP else None


def _with_position(asked: PushedFilters, each: Filter) -> PushedFilters | None:
    position = getattr(each, "value", None)
    if type(position) is not int:
        return None
    match each:
        case GreaterThan():
            return asked.above(position)
        case GreaterThanOrEqual():
            return asked.above(position - 1)
        case LessThan():
            return asked.up_to(position - 1)
        case LessThanOrEqual():
            return asked.up_to(position)
        case EqualTo() | EqualNullSafe():
            return asked.above(position - 1).up_to(position)
        case _:
            return None


def _with_text(asked: PushedFilters, column: str, each: Filter) -> PushedFilters | None:
    if any("\0" in str(value) for value in _values(each)):
        return None  # a statement cannot say it; Spark will find that nothing has it
    match each:
        case EqualTo(value=str(text)) | EqualNullSafe(value=str(text)):
            values = frozenset({text})
        case In(value=several) if all(isinstance(text, str) for text in several):
            values = frozenset(several)
        case StringStartsWith(value=prefix) if column == "subject" and prefix and prefix.isascii():
            return replace(asked, selection=asked.selection.within(*_span(prefix)))
        case _:
            return None
    return replace(asked, selection=asked.selection.among(column, values))


def _values(each: Filter) -> tuple[object, ...]:
    value = getattr(each, "value", None)
    return tuple(value) if isinstance(value, list | tuple) else (value,)


def _span(prefix: str) -> tuple[str, str]:
    """Bounds [low, high) around everything that begins so: subjects are ASCII, and their order is that of bytes."""
    return prefix, prefix[:-1] + chr(ord(prefix[-1]) + 1)

"""Ranges of the journal as Arrow batches, for readers of large parts of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol
from urllib.parse import urlsplit

from tape.core.errors import UsageError, quoted
from tape.core.event import Columns
from tape.core.ids import Epoch, GlobalSeq
from tape.core.ports import Bounds
from tape.core.term import Term
from tape.store.statements import statements

if TYPE_CHECKING:
    import pyarrow as pa

BATCH_BYTES: Final = 8 << 20
BYTES: Final = frozenset({"payload_bytes"})
INTEGERS: Final = frozenset("global_seq seq ts_ms depth epoch crc schema_version cause".split())


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeSelection:
    """Selects entries of a range; None selects all. A span is [low, high) of subjects in byte order."""

    run_ids: frozenset[str] | None = None
    kinds: frozenset[str] | None = None
    subjects: frozenset[str] | None = None
    span: tuple[str, str] | None = None

    @property
    def is_everything(self) -> bool:
        return self == RangeSelection()

    @property
    def is_nothing(self) -> bool:
        """Whether no entry can match."""
        is_crossed = self.span is not None and self.span[0] >= self.span[1]
        return is_crossed or any(values is not None and not values for values in self._sets())

    def _sets(self) -> tuple[frozenset[str] | None, ...]:
        return self.run_ids, self.kinds, self.subjects

    def among(self, column: str, values: frozenset[str]) -> RangeSelection:
        """Narrows the selection to these values of a column."""
        match column:
            case "run_id":
                return replace(self, run_ids=values & (self.run_ids if self.run_ids is not None else values))
            case "kind":
                return replace(self, kinds=values & (self.kinds if self.kinds is not None else values))
            case "subject":
                return replace(self, subjects=values & (self.subjects if self.subjects is not None else values))
            case _:
                raise UsageError(f"nothing is looked up by {quoted(column)}")

    def within(self, low: str, high: str) -> RangeSelection:
        """Narrows the selection to subjects in this span."""
        before = self.span or (low, high)
        return replace(self, span=(max(low, before[0]), min(high, before[1])))


EVERYTHING: Final = RangeSelection()


class Extent(NamedTuple):
    """The bounds and the terms of a journal in one snapshot; the present term is the last."""

    bounds: Bounds
    terms: Sequence[Term]

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]]) -> Extent:
        """From a row for each term: floor, head, the term's epoch and first position."""
        floor, head, *_ = rows[0]
        terms = [Term(Epoch(epoch), GlobalSeq(first)) for _, _, epoch, first in rows]
        return cls(Bounds(GlobalSeq(floor), GlobalSeq(head)), terms)

    @property
    def epoch(self) -> Epoch:
        return self.terms[-1].epoch


class Ranges(Protocol):
    """Reads ranges of one journal.

    Batches come in the order of positions with only the given columns; the reader counts the rows. `count` is the
    number of entries in a range, without a selection.
    """

    def bounds(self) -> Bounds: ...
    def extent(self) -> Extent: ...
    def count(self, after: int, through: int) -> int: ...
    def read(
        self, after: int, through: int, columns: Sequence[str], selection: RangeSelection
    ) -> Iterator[pa.RecordBatch]: ...


class Sql(NamedTuple):
    """The statements of a dialect."""

    bounds: str
    extent: str
    count_between: str
    range: str
    of_runs: str
    of_kinds: str
    of_subjects: str
    of_span: str
    in_order: str

    def selecting(self, columns: Sequence[str], selection: RangeSelection) -> str:
        """The statement for these columns of this selection; values are bound, never part of its text."""
        parts = [
            _narrowed(self.range, columns),
            self.of_runs if selection.run_ids is not None else "",
            self.of_kinds if selection.kinds is not None else "",
            self.of_subjects if selection.subjects is not None else "",
            self.of_span if selection.span is not None else "",
            self.in_order,
        ]
        return "\n".join(filter(None, parts))


def arrow_schema(columns: Sequence[str] = Columns._fields) -> pa.Schema:
    """The Arrow types of the journal's columns."""
    import pyarrow as pa

    kinds = {**dict.fromkeys(INTEGERS, pa.int64()), **dict.fromkeys(BYTES, pa.binary())}
    return pa.schema([(column, kinds.get(column, pa.string())) for column in columns])


def sql_of(dialect: str) -> Sql:
    found = statements(dialect, "lake.sql")
    return Sql(**{name: found[name] for name in Sql._fields})


def open_ranges(url: str) -> AbstractContextManager[Ranges]:
    """Opens the journal at a URL, if its store keeps everything; creates and migrates nothing."""
    match urlsplit(url).scheme:
        case "sqlite":
            from tape.store.sqlite.ranges import open_sqlite

            return open_sqlite(url)
        case "postgresql" | "postgres":
            from tape.store.postgres.ranges import open_postgres

            return open_postgres(url)
        case scheme:
            raise refused(scheme)


def refused(scheme: str) -> UsageError:
    """The error for a store that cannot have a lake."""
    kind = {"memory": "memory://", "redis": "redis://", "rediss": "redis://"}.get(scheme)
    if kind is None:
        return UsageError(f"a lake is filled from sqlite:///file.db or postgresql://…, not from {quoted(scheme)}")
    return UsageError(f"{kind} has no lake: it keeps only the newest entries; use sqlite:///file.db or postgresql://…")


def _narrowed(statement: str, columns: Sequence[str]) -> str:
    """The statement with only these columns."""
    listed, source = statement.removeprefix("SELECT").split("FROM", 1)
    expressions = dict(zip(Columns._fields, listed.split(","), strict=True))
    unknown = [column for column in columns if column not in expressions]
    if unknown or not columns:
        raise UsageError(f"an entry has the columns {', '.join(expressions)}, not {quoted(next(iter(unknown), ''))}")
    return "SELECT" + ",".join(expressions[column] for column in columns) + "\nFROM" + source

"""Operations that each surface calls in its own way: events are appended and streamed, the lake is read and searched.

They have the same facts as all others, so that a permission for them is checked on these, but no handler in `Handlers`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tape.core.event import Entry, Event
from tape.core.lake import LakeRows, LakeStatus, LakeTable
from tape.core.search import Search, SearchKind
from tape.core.value import ValueChange
from tape.operations.ledgers import LedgerStreamOptions
from tape.operations.operation import Access, Operation, OperationRequest, Repeat, Scope, Shape
from tape.operations.reactions import OfReaction


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendEvents(OperationRequest[Sequence[Entry]]):
    """Appends one event or many, all or none; the same key and body again give the first positions."""

    events: tuple[Event, ...]
    key: str | None = None
    expected_seq: int | None = None
    open: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamEvents(OperationRequest[Entry], LedgerStreamOptions):
    """Entries of a run, or of the journal across runs: first what there is, then what comes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchValue(OperationRequest[ValueChange]):
    """The versions of a value after one, and then those that are written."""

    namespace: str
    key: str
    from_version: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GetLakeStatus(OperationRequest[LakeStatus]):
    """Which positions are in the lake, in the journal and in memory, and how far the lake is behind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListLakeTables(OperationRequest[Sequence[LakeTable]]):
    """The tables of the lake, and how far each has come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GetLakeTable(OperationRequest[LakeRows]):
    """The first rows of a table of the lake."""

    name: str
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryLake(OperationRequest[LakeRows]):
    """Runs one SQL query, which changes nothing and reads nothing but the lake."""

    sql: str
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OfSearch(OfReaction):
    """The base of requests that begin a search of the positions above `after` up to `through`."""

    after: int = 0
    through: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginDryRun(OperationRequest[Search], OfSearch):
    """Counts what a reaction would have matched in the whole history."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginBackfill(OperationRequest[Search], OfSearch):
    """Makes the tasks that a reaction would have from the beginning, and none that exists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GetSearches(OperationRequest[Mapping[SearchKind, Search]], OfReaction):
    """The progress and findings of a reaction's last dry run and last backfill."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelSearch(OperationRequest[Search], OfReaction):
    """Cancels the search of a reaction that is in progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GetCapabilities(OperationRequest[Mapping[str, Any]]):
    """The server's version, its features and limits, and the operations and fields that it knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GetMetrics(OperationRequest[str]):
    """The server's metrics in the text format of Prometheus."""


OPERATIONS: Final = (
    Operation("event.append", AppendEvents, Access.WRITE, Scope.SUBJECT, Repeat.KEYED),
    Operation("event.stream", StreamEvents, Access.READ, Scope.SUBJECT, Repeat.SAFE, Shape.STREAM),
    Operation("value.watch", WatchValue, Access.READ, Scope.SUBJECT, Repeat.SAFE, Shape.STREAM),
    Operation("lake.status", GetLakeStatus, Access.READ, Scope.LAKE, Repeat.SAFE),
    Operation("lake.tables", ListLakeTables, Access.READ, Scope.LAKE, Repeat.SAFE),
    Operation("lake.table", GetLakeTable, Access.READ, Scope.LAKE, Repeat.SAFE),
    Operation("lake.query", QueryLake, Access.READ, Scope.LAKE, Repeat.SAFE),
    Operation("reaction.dry-run", BeginDryRun, Access.READ, Scope.REACTION, Repeat.SAFE),
    Operation("reaction.backfill", BeginBackfill, Access.WRITE, Scope.REACTION, Repeat.AGAIN),
    Operation("reaction.searches", GetSearches, Access.READ, Scope.REACTION, Repeat.SAFE),
    Operation("reaction.cancel-search", CancelSearch, Access.WRITE, Scope.REACTION, Repeat.AGAIN),
    Operation("node.capabilities", GetCapabilities, Access.READ, Scope.NODE, Repeat.SAFE),
    Operation("node.metrics", GetMetrics, Access.READ, Scope.NODE, Repeat.SAFE),
)

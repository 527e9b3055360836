"""Operations of runs in the journal: a run is opened, read, closed, forked and reaped, with or without a ledger."""

from dataclasses import dataclass, fields
from datetime import timedelta
from typing import Final

from tape.core.event_page import EventPage
from tape.core.fork_policy import EffectPolicy
from tape.core.producer import TURNS
from tape.core.run import ClosedRun, ForkedRun, OpenedRun, RunMeta, RunRecord
from tape.core.run_detail import RunDetail
from tape.core.run_diff import RunDiff
from tape.core.run_query import MAX_PAGE, RunQuery
from tape.operations.fields import NO_WAIT
from tape.operations.operation import Access, Operation, OperationRequest, PageRequest, Repeat, Scope, Shape

CANCELLED: Final = "it was asked for"
DIFF_ROWS: Final = 500
EVENTS: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenRun(OperationRequest[OpenedRun], RunMeta):
    """Opens a run, or a closed one again; without an id it gets a new one."""

    run_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CloseRun(OperationRequest[ClosedRun]):
    """Closes a run after all earlier appends; a closed run stays as it is."""

    run_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelRun(OperationRequest[ClosedRun]):
    """Stops the producer or function of a run and closes the run; one that has ended stays as it is."""

    run_id: str
    reason: str = CANCELLED


@dataclass(frozen=True, slots=True, kw_only=True)
class ReapRun(OperationRequest[ClosedRun]):
    """Reaps a closed run: a bounded store deletes its entries, a durable one keeps them."""

    run_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ListRuns(PageRequest[RunRecord], RunQuery):
    """The runs that match, in pages: open ones first unless filters or an order say otherwise."""

    limit: int = MAX_PAGE

    @property
    def query(self) -> RunQuery:
        return RunQuery(**{each.name: getattr(self, each.name) for each in fields(RunQuery)})


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowRun(OperationRequest[RunDetail]):
    """A run in the journal, with its state in its ledger and its obligations that are not met."""

    run_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkRun(OperationRequest[ForkedRun]):
    """Creates a run with the entries 1 to `at_seq` of another; a producer continues it, if one is named."""

    run_id: str
    at_seq: int
    mutation_json: str = ""
    n_turns: int = TURNS
    producer: str | None = None
    effects: EffectPolicy | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffRuns(OperationRequest[RunDiff]):
    """The entries, decisions and effects in which two runs differ."""

    run_id: str
    other: str
    limit: int = DIFF_ROWS


@dataclass(frozen=True, slots=True, kw_only=True)
class ListEvents(OperationRequest[EventPage]):
    """Entries of a run after a seq; with a `wait`, it waits that long for the first one or for the run's end.

    `epoch` is the epoch of `after`, if the caller knows it.
    """

    run_id: str
    after: int = 0
    limit: int = EVENTS
    wait: timedelta = NO_WAIT
    epoch: int | None = None


OPERATIONS: Final = (
    Operation("run.open", OpenRun, Access.WRITE, Scope.RUN, Repeat.AGAIN),
    Operation("run.close", CloseRun, Access.WRITE, Scope.RUN, Repeat.SAME),
    Operation("run.cancel", CancelRun, Access.WRITE, Scope.RUN, Repeat.SAME),
    Operation("run.reap", ReapRun, Access.WRITE, Scope.RUN, Repeat.SAME),
    Operation("run.list", ListRuns, Access.READ, Scope.NODE, Repeat.SAFE, Shape.PAGE),
    Operation("run.show", ShowRun, Access.READ, Scope.RUN, Repeat.SAFE),
    Operation("run.fork", ForkRun, Access.WRITE, Scope.RUN, Repeat.AGAIN),
    Operation("run.diff", DiffRuns, Access.READ, Scope.RUN, Repeat.SAFE),
    Operation("event.list", ListEvents, Access.READ, Scope.RUN, Repeat.SAFE, Shape.PAGE),
)

"""Operations of runs in their ledger: a run begins once, has one worker at a time, and ends for good."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from tape.core.claim import RUN_LEASE
from tape.core.ids import RunId
from tape.core.run_state import ENDINGS, Compaction, RunClaim, RunSpec, RunState, RunStatus
from tape.operations.operation import Access, Operation, OperationRequest, Repeat, Scope

LIMIT: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginRun(OperationRequest[RunClaim], RunSpec):
    """Begins a run, unique for its four names; beginning it again resumes it, if it has not ended.

    What else is given is for a new run only. With an owner, each call that gets the run is a new attempt.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeRun(OperationRequest[RunClaim]):
    """Leases a run to a worker, unless it has ended or another worker holds it."""

    run_id: str
    owner: str
    lease: timedelta = RUN_LEASE


@dataclass(frozen=True, slots=True, kw_only=True)
class RenewRun(OperationRequest[RunState]):
    """Renews a worker's lease and returns the run's state."""

    run_id: str
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EndRun(OperationRequest[RunState]):
    """Ends a run; one that has ended for good stays as it is and refuses another end, and any end another detail."""

    run_id: str
    status: RunStatus
    detail_json: str = ""
    fence: int | None = None

    statuses = tuple(sorted(ENDINGS))


@dataclass(frozen=True, slots=True, kw_only=True)
class GetRun(OperationRequest[RunState]):
    """The state of a run."""

    run_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FindNewestRun(OperationRequest[RunId]):
    """The run that was begun last in a session."""

    app: str
    user: str
    session: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ListRunsToRecover(OperationRequest[Sequence[RunState]]):
    """Runs that need a worker: never taken, released, or with an expired lease."""

    app: str | None = None
    limit: int = LIMIT
    now_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListCompactableRuns(OperationRequest[Sequence[RunState]]):
    """Runs that ended before a time and were never compacted, the oldest first."""

    before_ms: int
    limit: int = LIMIT


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactRun(OperationRequest[Compaction]):
    """Deletes the bodies of a settled run's decisions and effects and keeps the records."""

    run_id: str


OPERATIONS: Final = (
    Operation("run.begin", BeginRun, Access.WRITE, Scope.RUN, Repeat.AGAIN),
    Operation("run.take", TakeRun, Access.WRITE, Scope.RUN, Repeat.AGAIN),
    Operation("run.renew", RenewRun, Access.WRITE, Scope.RUN, Repeat.AGAIN),
    Operation("run.end", EndRun, Access.WRITE, Scope.RUN, Repeat.SAME),
    Operation("run.get", GetRun, Access.READ, Scope.RUN, Repeat.SAFE),
    Operation("run.newest", FindNewestRun, Access.READ, Scope.NODE, Repeat.SAFE),
    Operation("run.to-recover", ListRunsToRecover, Access.READ, Scope.NODE, Repeat.SAFE),
    Operation("run.compactable", ListCompactableRuns, Access.READ, Scope.NODE, Repeat.SAFE),
    Operation("run.compact", CompactRun, Access.WRITE, Scope.RUN, Repeat.SAME),
)

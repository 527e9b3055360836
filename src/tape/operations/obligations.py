"""Operations of obligations: what a failed run has to undo, newest first, one at a time."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from tape.core.claim import WORK_LEASE
from tape.core.effect import Compensation
from tape.core.obligation import Obligation, ObligationClaim, ObligationStatus
from tape.operations.operation import Access, Operation, OperationRequest, PageRequest, Repeat, Scope, Shape

LIMIT: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterCompensation(OperationRequest[Obligation], Compensation):
    """Registers one obligation per effect and kind; it waits until its run has failed."""

    run_id: str
    effect_key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GetObligation(OperationRequest[Obligation | None]):
    """An obligation of a run."""

    run_id: str
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ListObligations(PageRequest[Obligation]):
    """The obligations of a run, newest first: all, those with one status, or those that are not resolved."""

    run_id: str
    only_unresolved: bool = False
    status: ObligationStatus | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListUnresolvedObligations(OperationRequest[Sequence[Obligation]]):
    """The next due obligation of each run, the longest due first; stuck ones if asked for.

    With an app and compensators, only those that such a worker can serve. Without a flag: pending ones, and claimed
    ones whose lease has ended.
    """

    limit: int = LIMIT
    now_ms: int | None = None
    app: str = ""
    compensators: tuple[str, ...] | None = None
    include_pending: bool = False
    include_committed_expired: bool = False
    include_stuck: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimObligation(OperationRequest[ObligationClaim]):
    """Leases an obligation to a worker of its app, if it is the run's next one and due."""

    run_id: str
    number: int
    owner: str
    lease: timedelta = WORK_LEASE
    app: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordObligationAttempt(OperationRequest[Obligation]):
    """Records a failed attempt; without a next time the obligation is stuck. Attempt 0 is the newest one."""

    run_id: str
    number: int
    attempt: int = 0
    error: str = ""
    next_attempt_at_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolveObligation(OperationRequest[Obligation]):
    """Ends an obligation; its holder passes the attempt, an operator need not."""

    run_id: str
    number: int
    status: ObligationStatus
    result_json: str = ""
    attempt: int | None = None

    statuses = (ObligationStatus.COMPENSATED, ObligationStatus.STUCK)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryObligation(OperationRequest[Obligation]):
    """Makes a stuck obligation pending and due again, with all its attempts; any other stays as it is."""

    run_id: str
    number: int


OPERATIONS: Final = (
    Operation("obligation.register", RegisterCompensation, Access.WRITE, Scope.RUN, Repeat.SAME),
    Operation("obligation.get", GetObligation, Access.READ, Scope.RUN, Repeat.SAFE),
    Operation("obligation.list", ListObligations, Access.READ, Scope.RUN, Repeat.SAFE, Shape.PAGE),
    Operation("obligation.due", ListUnresolvedObligations, Access.READ, Scope.NODE, Repeat.SAFE),
    Operation("obligation.claim", ClaimObligation, Access.WRITE, Scope.RUN, Repeat.AGAIN),
    Operation("obligation.attempt", RecordObligationAttempt, Access.WRITE, Scope.RUN, Repeat.KEYED),
    Operation("obligation.resolve", ResolveObligation, Access.WRITE, Scope.RUN, Repeat.SAME),
    Operation("obligation.retry", RetryObligation, Access.WRITE, Scope.RUN, Repeat.SAME),
)

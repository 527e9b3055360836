"""Operations of decisions and effects: an effect is recorded before it is done, and its outcome once."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from tape.core.claim import WORK_LEASE
from tape.core.decision import Decision, DecisionSpec
from tape.core.effect import Effect, EffectClaim, EffectSpec, EffectStatus, Observation
from tape.operations.operation import Access, Operation, OperationRequest, PageRequest, Repeat, Scope, Shape

LIMIT: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordDecision(OperationRequest[Decision], DecisionSpec):
    """Records the decision at an index of a run; the first answer stays, and another question is refused."""

    fence: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GetDecision(OperationRequest[Decision | None]):
    """The decision at an index of a run."""

    run_id: str
    decision_index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ListDecisions(PageRequest[Decision]):
    """The decisions of a run, in order: all, or those of one model."""

    run_id: str
    model: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginEffect(OperationRequest[Effect], EffectSpec):
    """Records the intent of an effect; returns it as it is now if it exists.

    Another tool or request under its key or business key is refused, and until it has an outcome another way to do it.
    """

    fence: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OfEffect:
    """The base of requests that name an effect."""

    run_id: str
    idempotency_key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectOutcome(OfEffect):
    """The base of requests that record an outcome."""

    status: EffectStatus
    response_json: str = ""
    error_json: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompleteEffect(OperationRequest[Effect], EffectOutcome):
    """Records the outcome of a pending effect; an effect that has one keeps it and refuses another.

    A doubt (unknown) keeps its reason, and changes nothing about an effect with an outcome.
    """

    fence: int | None = None
    statuses = (EffectStatus.CONFIRMED, EffectStatus.FAILED, EffectStatus.UNKNOWN)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcileEffect(OperationRequest[Effect], EffectOutcome):
    """Records the real outcome of an effect in doubt; a known outcome stays, and another is refused."""

    statuses = (EffectStatus.CONFIRMED, EffectStatus.FAILED)


@dataclass(frozen=True, slots=True, kw_only=True)
class GetEffect(OperationRequest[Effect | None], OfEffect):
    """An effect of a run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListEffects(PageRequest[Effect]):
    """The effects of a run, in the order they began: all, or those with one status or of one connector."""

    run_id: str
    status: EffectStatus | None = None
    connector: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPendingEffects(OperationRequest[Sequence[Effect]]):
    """Effects to check: unknown ones, and inline ones that are pending for longer than a time; both without a flag."""

    older_than_ms: int = 0
    limit: int = LIMIT
    include_pending: bool = False
    include_unknown: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ListEffectsToDispatch(OperationRequest[Sequence[Effect]]):
    """Effects that wait for a dispatcher of an app, for one connector or all, the longest due first."""

    connector: str = ""
    limit: int = LIMIT
    now_ms: int | None = None
    app: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimEffectDispatch(OperationRequest[EffectClaim], OfEffect):
    """Leases an effect to a dispatcher of its app; a caller that does not get it sees the owner."""

    owner: str
    lease: timedelta = WORK_LEASE
    app: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordDispatchAttempt(OperationRequest[Effect], OfEffect):
    """Records a failed dispatch; without a next time the outcome is unknown. Attempt 0 is the newest one."""

    attempt: int = 0
    error: str = ""
    next_dispatch_at_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordExternalObservation(OperationRequest[Effect], Observation):
    """Records what a check outside has shown about an effect; a known outcome stays, and another is refused.

    A duplicate is undone once, also if it is found after the outcome. That the effect is absent or stuck changes
    nothing while a dispatcher has it.
    """

    run_id: str
    idempotency_key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryEffect(OperationRequest[Effect], OfEffect):
    """Makes an effect in doubt pending and due again, if it may be repeated; any other stays as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DoubtSilentDispatches(OperationRequest[Sequence[Effect]]):
    """Marks non-idempotent effects whose dispatcher has lost its lease as in doubt."""

    limit: int = LIMIT
    now_ms: int | None = None


OPERATIONS: Final = (
    Operation("decision.record", RecordDecision, Access.WRITE, Scope.RUN, Repeat.SAME),
    Operation("decision.get", GetDecision, Access.READ, Scope.RUN, Repeat.SAFE),
    Operation("decision.list", ListDecisions, Access.READ, Scope.RUN, Repeat.SAFE, Shape.PAGE),
    Operation("effect.begin", BeginEffect, Access.WRITE, Scope.RUN, Repeat.SAME),
    Operation("effect.complete", CompleteEffect, Access.WRITE, Scope.RUN, Repeat.SAME),
    Operation("effect.reconcile", ReconcileEffect, Access.WRITE, Scope.RUN, Repeat.SAME),
    Operation("effect.get", GetEffect, Access.READ, Scope.RUN, Repeat.SAFE),
    Operation("effect.list", ListEffects, Access.READ, Scope.RUN, Repeat.SAFE, Shape.PAGE),
    Operation("effect.pending", ListPendingEffects, Access.READ, Scope.NODE, Repeat.SAFE),
    Operation("effect.to-dispatch", ListEffectsToDispatch, Access.READ, Scope.NODE, Repeat.SAFE),
    Operation("effect.claim", ClaimEffectDispatch, Access.WRITE, Scope.RUN, Repeat.AGAIN),
    Operation("effect.attempt", RecordDispatchAttempt, Access.WRITE, Scope.RUN, Repeat.KEYED),
    Operation("effect.observe", RecordExternalObservation, Access.WRITE, Scope.RUN, Repeat.SAME),
    Operation("effect.retry", RetryEffect, Access.WRITE, Scope.RUN, Repeat.SAME),
    Operation("effect.doubt-silent", DoubtSilentDispatches, Access.WRITE, Scope.NODE, Repeat.AGAIN),
)

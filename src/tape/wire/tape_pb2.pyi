from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RunStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RUN_STATUS_UNSPECIFIED: _ClassVar[RunStatus]
    RUN_STATUS_RUNNABLE: _ClassVar[RunStatus]
    RUN_STATUS_RUNNING: _ClassVar[RunStatus]
    RUN_STATUS_WAITING: _ClassVar[RunStatus]
    RUN_STATUS_TERMINAL: _ClassVar[RunStatus]
    RUN_STATUS_FAILED: _ClassVar[RunStatus]
    RUN_STATUS_COMPENSATING: _ClassVar[RunStatus]
    RUN_STATUS_STUCK: _ClassVar[RunStatus]
    RUN_STATUS_CANCELLED: _ClassVar[RunStatus]

class EffectStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    EFFECT_STATUS_UNSPECIFIED: _ClassVar[EffectStatus]
    EFFECT_STATUS_PENDING: _ClassVar[EffectStatus]
    EFFECT_STATUS_CONFIRMED: _ClassVar[EffectStatus]
    EFFECT_STATUS_FAILED: _ClassVar[EffectStatus]
    EFFECT_STATUS_UNKNOWN: _ClassVar[EffectStatus]

class Semantics(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SEMANTICS_UNSPECIFIED: _ClassVar[Semantics]
    SEMANTICS_IDEMPOTENT: _ClassVar[Semantics]
    SEMANTICS_NON_IDEMPOTENT: _ClassVar[Semantics]
    SEMANTICS_OBSERVE_ONLY: _ClassVar[Semantics]

class DispatchMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DISPATCH_MODE_UNSPECIFIED: _ClassVar[DispatchMode]
    DISPATCH_MODE_INLINE: _ClassVar[DispatchMode]
    DISPATCH_MODE_OUTBOX: _ClassVar[DispatchMode]

class Resolution(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RESOLUTION_UNSPECIFIED: _ClassVar[Resolution]
    RESOLUTION_CONFIRMED: _ClassVar[Resolution]
    RESOLUTION_FAILED: _ClassVar[Resolution]
    RESOLUTION_ABSENT: _ClassVar[Resolution]
    RESOLUTION_DUPLICATE: _ClassVar[Resolution]
    RESOLUTION_STUCK: _ClassVar[Resolution]

class ObligationStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OBLIGATION_STATUS_UNSPECIFIED: _ClassVar[ObligationStatus]
    OBLIGATION_STATUS_PENDING: _ClassVar[ObligationStatus]
    OBLIGATION_STATUS_COMMITTED: _ClassVar[ObligationStatus]
    OBLIGATION_STATUS_COMPENSATED: _ClassVar[ObligationStatus]
    OBLIGATION_STATUS_STUCK: _ClassVar[ObligationStatus]

class TimerStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TIMER_STATUS_UNSPECIFIED: _ClassVar[TimerStatus]
    TIMER_STATUS_SET: _ClassVar[TimerStatus]
    TIMER_STATUS_FIRED: _ClassVar[TimerStatus]
    TIMER_STATUS_CANCELLED: _ClassVar[TimerStatus]

class HandlerKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    HANDLER_KIND_UNSPECIFIED: _ClassVar[HandlerKind]
    HANDLER_KIND_AGENT: _ClassVar[HandlerKind]
    HANDLER_KIND_TASK: _ClassVar[HandlerKind]
    HANDLER_KIND_PUBLISH: _ClassVar[HandlerKind]

class MatchOutcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MATCH_OUTCOME_UNSPECIFIED: _ClassVar[MatchOutcome]
    MATCH_OUTCOME_NOT_ACTIVE: _ClassVar[MatchOutcome]
    MATCH_OUTCOME_OTHER_SUBJECT: _ClassVar[MatchOutcome]
    MATCH_OUTCOME_NO_MATCH: _ClassVar[MatchOutcome]
    MATCH_OUTCOME_PREDICATE_ERROR: _ClassVar[MatchOutcome]
    MATCH_OUTCOME_TOO_DEEP: _ClassVar[MatchOutcome]
    MATCH_OUTCOME_NOT_YET: _ClassVar[MatchOutcome]
    MATCH_OUTCOME_TASK: _ClassVar[MatchOutcome]
    MATCH_OUTCOME_COALESCED: _ClassVar[MatchOutcome]
    MATCH_OUTCOME_BACKFILLED: _ClassVar[MatchOutcome]
    MATCH_OUTCOME_FORGOTTEN: _ClassVar[MatchOutcome]

class TaskStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TASK_STATUS_UNSPECIFIED: _ClassVar[TaskStatus]
    TASK_STATUS_PENDING: _ClassVar[TaskStatus]
    TASK_STATUS_CLAIMED: _ClassVar[TaskStatus]
    TASK_STATUS_DONE: _ClassVar[TaskStatus]
    TASK_STATUS_FAILED: _ClassVar[TaskStatus]
    TASK_STATUS_DLQ: _ClassVar[TaskStatus]

class RunStatusFilter(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RUN_STATUS_FILTER_UNSPECIFIED: _ClassVar[RunStatusFilter]
    RUN_STATUS_FILTER_OPEN: _ClassVar[RunStatusFilter]
    RUN_STATUS_FILTER_RUNNING: _ClassVar[RunStatusFilter]
    RUN_STATUS_FILTER_STALE: _ClassVar[RunStatusFilter]
    RUN_STATUS_FILTER_COMPLETE: _ClassVar[RunStatusFilter]

class RunOrder(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RUN_ORDER_UNSPECIFIED: _ClassVar[RunOrder]
    RUN_ORDER_LIVE: _ClassVar[RunOrder]
    RUN_ORDER_NEWEST: _ClassVar[RunOrder]
    RUN_ORDER_OLDEST: _ClassVar[RunOrder]
    RUN_ORDER_ID: _ClassVar[RunOrder]

class EffectPolicy(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    EFFECT_POLICY_UNSPECIFIED: _ClassVar[EffectPolicy]
    EFFECT_POLICY_REPLAY: _ClassVar[EffectPolicy]
    EFFECT_POLICY_STUB: _ClassVar[EffectPolicy]
    EFFECT_POLICY_LIVE: _ClassVar[EffectPolicy]

class OutboxStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OUTBOX_STATUS_UNSPECIFIED: _ClassVar[OutboxStatus]
    OUTBOX_STATUS_PENDING: _ClassVar[OutboxStatus]
    OUTBOX_STATUS_IN_FLIGHT: _ClassVar[OutboxStatus]
    OUTBOX_STATUS_DELIVERED: _ClassVar[OutboxStatus]
    OUTBOX_STATUS_FAILED: _ClassVar[OutboxStatus]
RUN_STATUS_UNSPECIFIED: RunStatus
RUN_STATUS_RUNNABLE: RunStatus
RUN_STATUS_RUNNING: RunStatus
RUN_STATUS_WAITING: RunStatus
RUN_STATUS_TERMINAL: RunStatus
RUN_STATUS_FAILED: RunStatus
RUN_STATUS_COMPENSATING: RunStatus
RUN_STATUS_STUCK: RunStatus
RUN_STATUS_CANCELLED: RunStatus
EFFECT_STATUS_UNSPECIFIED: EffectStatus
EFFECT_STATUS_PENDING: EffectStatus
EFFECT_STATUS_CONFIRMED: EffectStatus
EFFECT_STATUS_FAILED: EffectStatus
EFFECT_STATUS_UNKNOWN: EffectStatus
SEMANTICS_UNSPECIFIED: Semantics
SEMANTICS_IDEMPOTENT: Semantics
SEMANTICS_NON_IDEMPOTENT: Semantics
SEMANTICS_OBSERVE_ONLY: Semantics
DISPATCH_MODE_UNSPECIFIED: DispatchMode
DISPATCH_MODE_INLINE: DispatchMode
DISPATCH_MODE_OUTBOX: DispatchMode
RESOLUTION_UNSPECIFIED: Resolution
RESOLUTION_CONFIRMED: Resolution
RESOLUTION_FAILED: Resolution
RESOLUTION_ABSENT: Resolution
RESOLUTION_DUPLICATE: Resolution
RESOLUTION_STUCK: Resolution
OBLIGATION_STATUS_UNSPECIFIED: ObligationStatus
OBLIGATION_STATUS_PENDING: ObligationStatus
OBLIGATION_STATUS_COMMITTED: ObligationStatus
OBLIGATION_STATUS_COMPENSATED: ObligationStatus
OBLIGATION_STATUS_STUCK: ObligationStatus
TIMER_STATUS_UNSPECIFIED: TimerStatus
TIMER_STATUS_SET: TimerStatus
TIMER_STATUS_FIRED: TimerStatus
TIMER_STATUS_CANCELLED: TimerStatus
HANDLER_KIND_UNSPECIFIED: HandlerKind
HANDLER_KIND_AGENT: HandlerKind
HANDLER_KIND_TASK: HandlerKind
HANDLER_KIND_PUBLISH: HandlerKind
MATCH_OUTCOME_UNSPECIFIED: MatchOutcome
MATCH_OUTCOME_NOT_ACTIVE: MatchOutcome
MATCH_OUTCOME_OTHER_SUBJECT: MatchOutcome
MATCH_OUTCOME_NO_MATCH: MatchOutcome
MATCH_OUTCOME_PREDICATE_ERROR: MatchOutcome
MATCH_OUTCOME_TOO_DEEP: MatchOutcome
MATCH_OUTCOME_NOT_YET: MatchOutcome
MATCH_OUTCOME_TASK: MatchOutcome
MATCH_OUTCOME_COALESCED: MatchOutcome
MATCH_OUTCOME_BACKFILLED: MatchOutcome
MATCH_OUTCOME_FORGOTTEN: MatchOutcome
TASK_STATUS_UNSPECIFIED: TaskStatus
TASK_STATUS_PENDING: TaskStatus
TASK_STATUS_CLAIMED: TaskStatus
TASK_STATUS_DONE: TaskStatus
TASK_STATUS_FAILED: TaskStatus
TASK_STATUS_DLQ: TaskStatus
RUN_STATUS_FILTER_UNSPECIFIED: RunStatusFilter
RUN_STATUS_FILTER_OPEN: RunStatusFilter
RUN_STATUS_FILTER_RUNNING: RunStatusFilter
RUN_STATUS_FILTER_STALE: RunStatusFilter
RUN_STATUS_FILTER_COMPLETE: RunStatusFilter
RUN_ORDER_UNSPECIFIED: RunOrder
RUN_ORDER_LIVE: RunOrder
RUN_ORDER_NEWEST: RunOrder
RUN_ORDER_OLDEST: RunOrder
RUN_ORDER_ID: RunOrder
EFFECT_POLICY_UNSPECIFIED: EffectPolicy
EFFECT_POLICY_REPLAY: EffectPolicy
EFFECT_POLICY_STUB: EffectPolicy
EFFECT_POLICY_LIVE: EffectPolicy
OUTBOX_STATUS_UNSPECIFIED: OutboxStatus
OUTBOX_STATUS_PENDING: OutboxStatus
OUTBOX_STATUS_IN_FLIGHT: OutboxStatus
OUTBOX_STATUS_DELIVERED: OutboxStatus
OUTBOX_STATUS_FAILED: OutboxStatus

class RunState(_message.Message):
    __slots__ = ("run_id", "app_name", "user_id", "session_id", "invocation_id", "status", "seq_cursor", "lease_owner", "lease_expires_at_ms", "started_at_ms", "ended_at_ms", "waiting_on_gate", "tenant_id", "actor", "subject", "agent_id", "scopes", "labels", "attempt", "lease_ttl_ms", "detail_json", "compacted_at_ms", "cause", "resumed", "acquired")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    APP_NAME_FIELD_NUMBER: _ClassVar[int]
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    INVOCATION_ID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    SEQ_CURSOR_FIELD_NUMBER: _ClassVar[int]
    LEASE_OWNER_FIELD_NUMBER: _ClassVar[int]
    LEASE_EXPIRES_AT_MS_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_MS_FIELD_NUMBER: _ClassVar[int]
    ENDED_AT_MS_FIELD_NUMBER: _ClassVar[int]
    WAITING_ON_GATE_FIELD_NUMBER: _ClassVar[int]
    TENANT_ID_FIELD_NUMBER: _ClassVar[int]
    ACTOR_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    SCOPES_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    LEASE_TTL_MS_FIELD_NUMBER: _ClassVar[int]
    DETAIL_JSON_FIELD_NUMBER: _ClassVar[int]
    COMPACTED_AT_MS_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    RESUMED_FIELD_NUMBER: _ClassVar[int]
    ACQUIRED_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    app_name: str
    user_id: str
    session_id: str
    invocation_id: str
    status: RunStatus
    seq_cursor: int
    lease_owner: str
    lease_expires_at_ms: int
    started_at_ms: int
    ended_at_ms: int
    waiting_on_gate: str
    tenant_id: str
    actor: str
    subject: str
    agent_id: str
    scopes: _containers.RepeatedScalarFieldContainer[str]
    labels: _containers.ScalarMap[str, str]
    attempt: int
    lease_ttl_ms: int
    detail_json: str
    compacted_at_ms: int
    cause: int
    resumed: bool
    acquired: bool
    def __init__(self, run_id: _Optional[str] = ..., app_name: _Optional[str] = ..., user_id: _Optional[str] = ..., session_id: _Optional[str] = ..., invocation_id: _Optional[str] = ..., status: _Optional[_Union[RunStatus, str]] = ..., seq_cursor: _Optional[int] = ..., lease_owner: _Optional[str] = ..., lease_expires_at_ms: _Optional[int] = ..., started_at_ms: _Optional[int] = ..., ended_at_ms: _Optional[int] = ..., waiting_on_gate: _Optional[str] = ..., tenant_id: _Optional[str] = ..., actor: _Optional[str] = ..., subject: _Optional[str] = ..., agent_id: _Optional[str] = ..., scopes: _Optional[_Iterable[str]] = ..., labels: _Optional[_Mapping[str, str]] = ..., attempt: _Optional[int] = ..., lease_ttl_ms: _Optional[int] = ..., detail_json: _Optional[str] = ..., compacted_at_ms: _Optional[int] = ..., cause: _Optional[int] = ..., resumed: _Optional[bool] = ..., acquired: _Optional[bool] = ...) -> None: ...

class BeginRunRequest(_message.Message):
    __slots__ = ("app_name", "user_id", "session_id", "invocation_id", "lease_owner", "lease_ttl_ms", "tenant_id", "actor", "subject", "agent_id", "scopes", "labels", "cause")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    APP_NAME_FIELD_NUMBER: _ClassVar[int]
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    INVOCATION_ID_FIELD_NUMBER: _ClassVar[int]
    LEASE_OWNER_FIELD_NUMBER: _ClassVar[int]
    LEASE_TTL_MS_FIELD_NUMBER: _ClassVar[int]
    TENANT_ID_FIELD_NUMBER: _ClassVar[int]
    ACTOR_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    SCOPES_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    app_name: str
    user_id: str
    session_id: str
    invocation_id: str
    lease_owner: str
    lease_ttl_ms: int
    tenant_id: str
    actor: str
    subject: str
    agent_id: str
    scopes: _containers.RepeatedScalarFieldContainer[str]
    labels: _containers.ScalarMap[str, str]
    cause: int
    def __init__(self, app_name: _Optional[str] = ..., user_id: _Optional[str] = ..., session_id: _Optional[str] = ..., invocation_id: _Optional[str] = ..., lease_owner: _Optional[str] = ..., lease_ttl_ms: _Optional[int] = ..., tenant_id: _Optional[str] = ..., actor: _Optional[str] = ..., subject: _Optional[str] = ..., agent_id: _Optional[str] = ..., scopes: _Optional[_Iterable[str]] = ..., labels: _Optional[_Mapping[str, str]] = ..., cause: _Optional[int] = ...) -> None: ...

class BeginRunResponse(_message.Message):
    __slots__ = ("run_id", "resumed", "next_seq", "status", "acquired", "run")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    RESUMED_FIELD_NUMBER: _ClassVar[int]
    NEXT_SEQ_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    ACQUIRED_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    resumed: bool
    next_seq: int
    status: RunStatus
    acquired: bool
    run: RunState
    def __init__(self, run_id: _Optional[str] = ..., resumed: _Optional[bool] = ..., next_seq: _Optional[int] = ..., status: _Optional[_Union[RunStatus, str]] = ..., acquired: _Optional[bool] = ..., run: _Optional[_Union[RunState, _Mapping]] = ...) -> None: ...

class ResumeRunRequest(_message.Message):
    __slots__ = ("run_id", "lease_owner", "lease_ttl_ms", "attempt")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    LEASE_OWNER_FIELD_NUMBER: _ClassVar[int]
    LEASE_TTL_MS_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    lease_owner: str
    lease_ttl_ms: int
    attempt: int
    def __init__(self, run_id: _Optional[str] = ..., lease_owner: _Optional[str] = ..., lease_ttl_ms: _Optional[int] = ..., attempt: _Optional[int] = ...) -> None: ...

class EndRunRequest(_message.Message):
    __slots__ = ("run_id", "status", "detail_json", "fence")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    DETAIL_JSON_FIELD_NUMBER: _ClassVar[int]
    FENCE_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    status: RunStatus
    detail_json: str
    fence: int
    def __init__(self, run_id: _Optional[str] = ..., status: _Optional[_Union[RunStatus, str]] = ..., detail_json: _Optional[str] = ..., fence: _Optional[int] = ...) -> None: ...

class GetRunRequest(_message.Message):
    __slots__ = ("run_id",)
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    def __init__(self, run_id: _Optional[str] = ...) -> None: ...

class FindNewestRunRequest(_message.Message):
    __slots__ = ("app_name", "user_id", "session_id")
    APP_NAME_FIELD_NUMBER: _ClassVar[int]
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    app_name: str
    user_id: str
    session_id: str
    def __init__(self, app_name: _Optional[str] = ..., user_id: _Optional[str] = ..., session_id: _Optional[str] = ...) -> None: ...

class FindNewestRunResponse(_message.Message):
    __slots__ = ("run_id",)
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    def __init__(self, run_id: _Optional[str] = ...) -> None: ...

class ListRunsToRecoverRequest(_message.Message):
    __slots__ = ("limit", "now_ms", "app_name")
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    NOW_MS_FIELD_NUMBER: _ClassVar[int]
    APP_NAME_FIELD_NUMBER: _ClassVar[int]
    limit: int
    now_ms: int
    app_name: str
    def __init__(self, limit: _Optional[int] = ..., now_ms: _Optional[int] = ..., app_name: _Optional[str] = ...) -> None: ...

class ListRunsResponse(_message.Message):
    __slots__ = ("runs",)
    RUNS_FIELD_NUMBER: _ClassVar[int]
    runs: _containers.RepeatedCompositeFieldContainer[RunState]
    def __init__(self, runs: _Optional[_Iterable[_Union[RunState, _Mapping]]] = ...) -> None: ...

class SubscribeRunRequest(_message.Message):
    __slots__ = ("run_id", "from_seq", "epoch")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    FROM_SEQ_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    from_seq: int
    epoch: int
    def __init__(self, run_id: _Optional[str] = ..., from_seq: _Optional[int] = ..., epoch: _Optional[int] = ...) -> None: ...

class JournalEntry(_message.Message):
    __slots__ = ("seq", "kind", "payload_json", "ts_ms", "global_seq", "subject", "schema_version", "trace_id", "span_id", "parent_span_id", "run_id", "type", "epoch")
    SEQ_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_JSON_FIELD_NUMBER: _ClassVar[int]
    TS_MS_FIELD_NUMBER: _ClassVar[int]
    GLOBAL_SEQ_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_VERSION_FIELD_NUMBER: _ClassVar[int]
    TRACE_ID_FIELD_NUMBER: _ClassVar[int]
    SPAN_ID_FIELD_NUMBER: _ClassVar[int]
    PARENT_SPAN_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    seq: int
    kind: str
    payload_json: str
    ts_ms: int
    global_seq: int
    subject: str
    schema_version: int
    trace_id: str
    span_id: str
    parent_span_id: str
    run_id: str
    type: str
    epoch: int
    def __init__(self, seq: _Optional[int] = ..., kind: _Optional[str] = ..., payload_json: _Optional[str] = ..., ts_ms: _Optional[int] = ..., global_seq: _Optional[int] = ..., subject: _Optional[str] = ..., schema_version: _Optional[int] = ..., trace_id: _Optional[str] = ..., span_id: _Optional[str] = ..., parent_span_id: _Optional[str] = ..., run_id: _Optional[str] = ..., type: _Optional[str] = ..., epoch: _Optional[int] = ...) -> None: ...

class ListCompactableRunsRequest(_message.Message):
    __slots__ = ("before_ms", "limit")
    BEFORE_MS_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    before_ms: int
    limit: int
    def __init__(self, before_ms: _Optional[int] = ..., limit: _Optional[int] = ...) -> None: ...

class CompactRunRequest(_message.Message):
    __slots__ = ("run_id",)
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    def __init__(self, run_id: _Optional[str] = ...) -> None: ...

class CompactionReport(_message.Message):
    __slots__ = ("decisions_zeroed", "effects_zeroed", "bytes_saved", "already_compacted")
    DECISIONS_ZEROED_FIELD_NUMBER: _ClassVar[int]
    EFFECTS_ZEROED_FIELD_NUMBER: _ClassVar[int]
    BYTES_SAVED_FIELD_NUMBER: _ClassVar[int]
    ALREADY_COMPACTED_FIELD_NUMBER: _ClassVar[int]
    decisions_zeroed: int
    effects_zeroed: int
    bytes_saved: int
    already_compacted: bool
    def __init__(self, decisions_zeroed: _Optional[int] = ..., effects_zeroed: _Optional[int] = ..., bytes_saved: _Optional[int] = ..., already_compacted: _Optional[bool] = ...) -> None: ...

class DecisionRecord(_message.Message):
    __slots__ = ("run_id", "decision_index", "model", "request_json", "response_json", "rationale", "policy_version", "ts_ms")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    DECISION_INDEX_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    REQUEST_JSON_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_JSON_FIELD_NUMBER: _ClassVar[int]
    RATIONALE_FIELD_NUMBER: _ClassVar[int]
    POLICY_VERSION_FIELD_NUMBER: _ClassVar[int]
    TS_MS_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    decision_index: int
    model: str
    request_json: str
    response_json: str
    rationale: str
    policy_version: str
    ts_ms: int
    def __init__(self, run_id: _Optional[str] = ..., decision_index: _Optional[int] = ..., model: _Optional[str] = ..., request_json: _Optional[str] = ..., response_json: _Optional[str] = ..., rationale: _Optional[str] = ..., policy_version: _Optional[str] = ..., ts_ms: _Optional[int] = ...) -> None: ...

class RecordDecisionRequest(_message.Message):
    __slots__ = ("run_id", "decision_index", "model", "request_json", "response_json", "rationale", "policy_version", "fence")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    DECISION_INDEX_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    REQUEST_JSON_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_JSON_FIELD_NUMBER: _ClassVar[int]
    RATIONALE_FIELD_NUMBER: _ClassVar[int]
    POLICY_VERSION_FIELD_NUMBER: _ClassVar[int]
    FENCE_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    decision_index: int
    model: str
    request_json: str
    response_json: str
    rationale: str
    policy_version: str
    fence: int
    def __init__(self, run_id: _Optional[str] = ..., decision_index: _Optional[int] = ..., model: _Optional[str] = ..., request_json: _Optional[str] = ..., response_json: _Optional[str] = ..., rationale: _Optional[str] = ..., policy_version: _Optional[str] = ..., fence: _Optional[int] = ...) -> None: ...

class GetDecisionRequest(_message.Message):
    __slots__ = ("run_id", "decision_index")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    DECISION_INDEX_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    decision_index: int
    def __init__(self, run_id: _Optional[str] = ..., decision_index: _Optional[int] = ...) -> None: ...

class GetDecisionResponse(_message.Message):
    __slots__ = ("found", "decision")
    FOUND_FIELD_NUMBER: _ClassVar[int]
    DECISION_FIELD_NUMBER: _ClassVar[int]
    found: bool
    decision: DecisionRecord
    def __init__(self, found: _Optional[bool] = ..., decision: _Optional[_Union[DecisionRecord, _Mapping]] = ...) -> None: ...

class ListDecisionsRequest(_message.Message):
    __slots__ = ("run_id", "cursor", "limit", "model")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    cursor: str
    limit: int
    model: str
    def __init__(self, run_id: _Optional[str] = ..., cursor: _Optional[str] = ..., limit: _Optional[int] = ..., model: _Optional[str] = ...) -> None: ...

class ListDecisionsResponse(_message.Message):
    __slots__ = ("decisions", "next_cursor")
    DECISIONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_CURSOR_FIELD_NUMBER: _ClassVar[int]
    decisions: _containers.RepeatedCompositeFieldContainer[DecisionRecord]
    next_cursor: str
    def __init__(self, decisions: _Optional[_Iterable[_Union[DecisionRecord, _Mapping]]] = ..., next_cursor: _Optional[str] = ...) -> None: ...

class Compensation(_message.Message):
    __slots__ = ("kind", "payload_json", "compensator_ref", "max_attempts", "app")
    KIND_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_JSON_FIELD_NUMBER: _ClassVar[int]
    COMPENSATOR_REF_FIELD_NUMBER: _ClassVar[int]
    MAX_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    APP_FIELD_NUMBER: _ClassVar[int]
    kind: str
    payload_json: str
    compensator_ref: str
    max_attempts: int
    app: str
    def __init__(self, kind: _Optional[str] = ..., payload_json: _Optional[str] = ..., compensator_ref: _Optional[str] = ..., max_attempts: _Optional[int] = ..., app: _Optional[str] = ...) -> None: ...

class EffectRecord(_message.Message):
    __slots__ = ("run_id", "idempotency_key", "tool_name", "status", "decision_index", "request_json", "response_json", "error_json", "semantics", "dispatch_mode", "business_key", "connector", "scope", "dispatch_attempts", "next_dispatch_at_ms", "external_ref", "dispatch_claimed_by", "dispatch_claim_expires_at_ms", "last_dispatch_error", "attempt", "began_at_ms", "settled_at_ms", "compensation", "app")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    TOOL_NAME_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    DECISION_INDEX_FIELD_NUMBER: _ClassVar[int]
    REQUEST_JSON_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_JSON_FIELD_NUMBER: _ClassVar[int]
    ERROR_JSON_FIELD_NUMBER: _ClassVar[int]
    SEMANTICS_FIELD_NUMBER: _ClassVar[int]
    DISPATCH_MODE_FIELD_NUMBER: _ClassVar[int]
    BUSINESS_KEY_FIELD_NUMBER: _ClassVar[int]
    CONNECTOR_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    DISPATCH_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_DISPATCH_AT_MS_FIELD_NUMBER: _ClassVar[int]
    EXTERNAL_REF_FIELD_NUMBER: _ClassVar[int]
    DISPATCH_CLAIMED_BY_FIELD_NUMBER: _ClassVar[int]
    DISPATCH_CLAIM_EXPIRES_AT_MS_FIELD_NUMBER: _ClassVar[int]
    LAST_DISPATCH_ERROR_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    BEGAN_AT_MS_FIELD_NUMBER: _ClassVar[int]
    SETTLED_AT_MS_FIELD_NUMBER: _ClassVar[int]
    COMPENSATION_FIELD_NUMBER: _ClassVar[int]
    APP_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    idempotency_key: str
    tool_name: str
    status: EffectStatus
    decision_index: int
    request_json: str
    response_json: str
    error_json: str
    semantics: Semantics
    dispatch_mode: DispatchMode
    business_key: str
    connector: str
    scope: str
    dispatch_attempts: int
    next_dispatch_at_ms: int
    external_ref: str
    dispatch_claimed_by: str
    dispatch_claim_expires_at_ms: int
    last_dispatch_error: str
    attempt: int
    began_at_ms: int
    settled_at_ms: int
    compensation: Compensation
    app: str
    def __init__(self, run_id: _Optional[str] = ..., idempotency_key: _Optional[str] = ..., tool_name: _Optional[str] = ..., status: _Optional[_Union[EffectStatus, str]] = ..., decision_index: _Optional[int] = ..., request_json: _Optional[str] = ..., response_json: _Optional[str] = ..., error_json: _Optional[str] = ..., semantics: _Optional[_Union[Semantics, str]] = ..., dispatch_mode: _Optional[_Union[DispatchMode, str]] = ..., business_key: _Optional[str] = ..., connector: _Optional[str] = ..., scope: _Optional[str] = ..., dispatch_attempts: _Optional[int] = ..., next_dispatch_at_ms: _Optional[int] = ..., external_ref: _Optional[str] = ..., dispatch_claimed_by: _Optional[str] = ..., dispatch_claim_expires_at_ms: _Optional[int] = ..., last_dispatch_error: _Optional[str] = ..., attempt: _Optional[int] = ..., began_at_ms: _Optional[int] = ..., settled_at_ms: _Optional[int] = ..., compensation: _Optional[_Union[Compensation, _Mapping]] = ..., app: _Optional[str] = ...) -> None: ...

class BeginEffectRequest(_message.Message):
    __slots__ = ("run_id", "decision_index", "tool_name", "call_index", "request_json", "custom_key", "semantics", "dispatch_mode", "business_key", "connector", "scope", "fence", "compensation", "app")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    DECISION_INDEX_FIELD_NUMBER: _ClassVar[int]
    TOOL_NAME_FIELD_NUMBER: _ClassVar[int]
    CALL_INDEX_FIELD_NUMBER: _ClassVar[int]
    REQUEST_JSON_FIELD_NUMBER: _ClassVar[int]
    CUSTOM_KEY_FIELD_NUMBER: _ClassVar[int]
    SEMANTICS_FIELD_NUMBER: _ClassVar[int]
    DISPATCH_MODE_FIELD_NUMBER: _ClassVar[int]
    BUSINESS_KEY_FIELD_NUMBER: _ClassVar[int]
    CONNECTOR_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    FENCE_FIELD_NUMBER: _ClassVar[int]
    COMPENSATION_FIELD_NUMBER: _ClassVar[int]
    APP_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    decision_index: int
    tool_name: str
    call_index: int
    request_json: str
    custom_key: str
    semantics: Semantics
    dispatch_mode: DispatchMode
    business_key: str
    connector: str
    scope: str
    fence: int
    compensation: Compensation
    app: str
    def __init__(self, run_id: _Optional[str] = ..., decision_index: _Optional[int] = ..., tool_name: _Optional[str] = ..., call_index: _Optional[int] = ..., request_json: _Optional[str] = ..., custom_key: _Optional[str] = ..., semantics: _Optional[_Union[Semantics, str]] = ..., dispatch_mode: _Optional[_Union[DispatchMode, str]] = ..., business_key: _Optional[str] = ..., connector: _Optional[str] = ..., scope: _Optional[str] = ..., fence: _Optional[int] = ..., compensation: _Optional[_Union[Compensation, _Mapping]] = ..., app: _Optional[str] = ...) -> None: ...

class BeginEffectResponse(_message.Message):
    __slots__ = ("idempotency_key", "status", "response_json", "error_json", "effect")
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_JSON_FIELD_NUMBER: _ClassVar[int]
    ERROR_JSON_FIELD_NUMBER: _ClassVar[int]
    EFFECT_FIELD_NUMBER: _ClassVar[int]
    idempotency_key: str
    status: EffectStatus
    response_json: str
    error_json: str
    effect: EffectRecord
    def __init__(self, idempotency_key: _Optional[str] = ..., status: _Optional[_Union[EffectStatus, str]] = ..., response_json: _Optional[str] = ..., error_json: _Optional[str] = ..., effect: _Optional[_Union[EffectRecord, _Mapping]] = ...) -> None: ...

class CompleteEffectRequest(_message.Message):
    __slots__ = ("run_id", "idempotency_key", "status", "response_json", "error_json", "fence")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_JSON_FIELD_NUMBER: _ClassVar[int]
    ERROR_JSON_FIELD_NUMBER: _ClassVar[int]
    FENCE_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    idempotency_key: str
    status: EffectStatus
    response_json: str
    error_json: str
    fence: int
    def __init__(self, run_id: _Optional[str] = ..., idempotency_key: _Optional[str] = ..., status: _Optional[_Union[EffectStatus, str]] = ..., response_json: _Optional[str] = ..., error_json: _Optional[str] = ..., fence: _Optional[int] = ...) -> None: ...

class GetEffectRequest(_message.Message):
    __slots__ = ("run_id", "idempotency_key")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    idempotency_key: str
    def __init__(self, run_id: _Optional[str] = ..., idempotency_key: _Optional[str] = ...) -> None: ...

class GetEffectResponse(_message.Message):
    __slots__ = ("found", "effect")
    FOUND_FIELD_NUMBER: _ClassVar[int]
    EFFECT_FIELD_NUMBER: _ClassVar[int]
    found: bool
    effect: EffectRecord
    def __init__(self, found: _Optional[bool] = ..., effect: _Optional[_Union[EffectRecord, _Mapping]] = ...) -> None: ...

class ReconcileEffectRequest(_message.Message):
    __slots__ = ("run_id", "idempotency_key", "resolved_status", "response_json", "error_json")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    RESOLVED_STATUS_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_JSON_FIELD_NUMBER: _ClassVar[int]
    ERROR_JSON_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    idempotency_key: str
    resolved_status: EffectStatus
    response_json: str
    error_json: str
    def __init__(self, run_id: _Optional[str] = ..., idempotency_key: _Optional[str] = ..., resolved_status: _Optional[_Union[EffectStatus, str]] = ..., response_json: _Optional[str] = ..., error_json: _Optional[str] = ...) -> None: ...

class ListEffectsRequest(_message.Message):
    __slots__ = ("run_id", "cursor", "limit", "status", "connector")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    CONNECTOR_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    cursor: str
    limit: int
    status: EffectStatus
    connector: str
    def __init__(self, run_id: _Optional[str] = ..., cursor: _Optional[str] = ..., limit: _Optional[int] = ..., status: _Optional[_Union[EffectStatus, str]] = ..., connector: _Optional[str] = ...) -> None: ...

class ListEffectsResponse(_message.Message):
    __slots__ = ("effects", "next_cursor")
    EFFECTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_CURSOR_FIELD_NUMBER: _ClassVar[int]
    effects: _containers.RepeatedCompositeFieldContainer[EffectRecord]
    next_cursor: str
    def __init__(self, effects: _Optional[_Iterable[_Union[EffectRecord, _Mapping]]] = ..., next_cursor: _Optional[str] = ...) -> None: ...

class ListPendingEffectsRequest(_message.Message):
    __slots__ = ("older_than_ms", "limit", "include_pending", "include_unknown")
    OLDER_THAN_MS_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_PENDING_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_UNKNOWN_FIELD_NUMBER: _ClassVar[int]
    older_than_ms: int
    limit: int
    include_pending: bool
    include_unknown: bool
    def __init__(self, older_than_ms: _Optional[int] = ..., limit: _Optional[int] = ..., include_pending: _Optional[bool] = ..., include_unknown: _Optional[bool] = ...) -> None: ...

class ListEffectsToDispatchRequest(_message.Message):
    __slots__ = ("now_ms", "connector", "limit", "app")
    NOW_MS_FIELD_NUMBER: _ClassVar[int]
    CONNECTOR_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    APP_FIELD_NUMBER: _ClassVar[int]
    now_ms: int
    connector: str
    limit: int
    app: str
    def __init__(self, now_ms: _Optional[int] = ..., connector: _Optional[str] = ..., limit: _Optional[int] = ..., app: _Optional[str] = ...) -> None: ...

class ClaimEffectDispatchRequest(_message.Message):
    __slots__ = ("run_id", "idempotency_key", "claimer", "lease_ttl_ms", "app")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    CLAIMER_FIELD_NUMBER: _ClassVar[int]
    LEASE_TTL_MS_FIELD_NUMBER: _ClassVar[int]
    APP_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    idempotency_key: str
    claimer: str
    lease_ttl_ms: int
    app: str
    def __init__(self, run_id: _Optional[str] = ..., idempotency_key: _Optional[str] = ..., claimer: _Optional[str] = ..., lease_ttl_ms: _Optional[int] = ..., app: _Optional[str] = ...) -> None: ...

class ClaimEffectDispatchResponse(_message.Message):
    __slots__ = ("acquired", "effect")
    ACQUIRED_FIELD_NUMBER: _ClassVar[int]
    EFFECT_FIELD_NUMBER: _ClassVar[int]
    acquired: bool
    effect: EffectRecord
    def __init__(self, acquired: _Optional[bool] = ..., effect: _Optional[_Union[EffectRecord, _Mapping]] = ...) -> None: ...

class RecordDispatchAttemptRequest(_message.Message):
    __slots__ = ("run_id", "idempotency_key", "error", "next_dispatch_at_ms", "attempt")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    NEXT_DISPATCH_AT_MS_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    idempotency_key: str
    error: str
    next_dispatch_at_ms: int
    attempt: int
    def __init__(self, run_id: _Optional[str] = ..., idempotency_key: _Optional[str] = ..., error: _Optional[str] = ..., next_dispatch_at_ms: _Optional[int] = ..., attempt: _Optional[int] = ...) -> None: ...

class RecordExternalObservationRequest(_message.Message):
    __slots__ = ("run_id", "idempotency_key", "resolution", "external_ref", "response_json", "error_json", "compensate_on_duplicate_kind", "compensate_on_duplicate")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    RESOLUTION_FIELD_NUMBER: _ClassVar[int]
    EXTERNAL_REF_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_JSON_FIELD_NUMBER: _ClassVar[int]
    ERROR_JSON_FIELD_NUMBER: _ClassVar[int]
    COMPENSATE_ON_DUPLICATE_KIND_FIELD_NUMBER: _ClassVar[int]
    COMPENSATE_ON_DUPLICATE_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    idempotency_key: str
    resolution: Resolution
    external_ref: str
    response_json: str
    error_json: str
    compensate_on_duplicate_kind: str
    compensate_on_duplicate: Compensation
    def __init__(self, run_id: _Optional[str] = ..., idempotency_key: _Optional[str] = ..., resolution: _Optional[_Union[Resolution, str]] = ..., external_ref: _Optional[str] = ..., response_json: _Optional[str] = ..., error_json: _Optional[str] = ..., compensate_on_duplicate_kind: _Optional[str] = ..., compensate_on_duplicate: _Optional[_Union[Compensation, _Mapping]] = ...) -> None: ...

class DoubtSilentDispatchesRequest(_message.Message):
    __slots__ = ("limit", "now_ms")
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    NOW_MS_FIELD_NUMBER: _ClassVar[int]
    limit: int
    now_ms: int
    def __init__(self, limit: _Optional[int] = ..., now_ms: _Optional[int] = ...) -> None: ...

class RetryEffectRequest(_message.Message):
    __slots__ = ("run_id", "idempotency_key")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    idempotency_key: str
    def __init__(self, run_id: _Optional[str] = ..., idempotency_key: _Optional[str] = ...) -> None: ...

class ObligationRecord(_message.Message):
    __slots__ = ("run_id", "seq", "effect_key", "kind", "status", "payload_json", "compensator_ref", "external_ref", "max_attempts", "attempts", "next_attempt_at_ms", "claimer", "claim_expires_at_ms", "attempt", "last_error", "result_json", "at_once", "registered_at_ms", "app")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    SEQ_FIELD_NUMBER: _ClassVar[int]
    EFFECT_KEY_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_JSON_FIELD_NUMBER: _ClassVar[int]
    COMPENSATOR_REF_FIELD_NUMBER: _ClassVar[int]
    EXTERNAL_REF_FIELD_NUMBER: _ClassVar[int]
    MAX_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_ATTEMPT_AT_MS_FIELD_NUMBER: _ClassVar[int]
    CLAIMER_FIELD_NUMBER: _ClassVar[int]
    CLAIM_EXPIRES_AT_MS_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    LAST_ERROR_FIELD_NUMBER: _ClassVar[int]
    RESULT_JSON_FIELD_NUMBER: _ClassVar[int]
    AT_ONCE_FIELD_NUMBER: _ClassVar[int]
    REGISTERED_AT_MS_FIELD_NUMBER: _ClassVar[int]
    APP_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    seq: int
    effect_key: str
    kind: str
    status: ObligationStatus
    payload_json: str
    compensator_ref: str
    external_ref: str
    max_attempts: int
    attempts: int
    next_attempt_at_ms: int
    claimer: str
    claim_expires_at_ms: int
    attempt: int
    last_error: str
    result_json: str
    at_once: bool
    registered_at_ms: int
    app: str
    def __init__(self, run_id: _Optional[str] = ..., seq: _Optional[int] = ..., effect_key: _Optional[str] = ..., kind: _Optional[str] = ..., status: _Optional[_Union[ObligationStatus, str]] = ..., payload_json: _Optional[str] = ..., compensator_ref: _Optional[str] = ..., external_ref: _Optional[str] = ..., max_attempts: _Optional[int] = ..., attempts: _Optional[int] = ..., next_attempt_at_ms: _Optional[int] = ..., claimer: _Optional[str] = ..., claim_expires_at_ms: _Optional[int] = ..., attempt: _Optional[int] = ..., last_error: _Optional[str] = ..., result_json: _Optional[str] = ..., at_once: _Optional[bool] = ..., registered_at_ms: _Optional[int] = ..., app: _Optional[str] = ...) -> None: ...

class RegisterCompensationRequest(_message.Message):
    __slots__ = ("run_id", "effect_key", "kind", "payload_json", "compensator_ref", "max_attempts", "app")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    EFFECT_KEY_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_JSON_FIELD_NUMBER: _ClassVar[int]
    COMPENSATOR_REF_FIELD_NUMBER: _ClassVar[int]
    MAX_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    APP_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    effect_key: str
    kind: str
    payload_json: str
    compensator_ref: str
    max_attempts: int
    app: str
    def __init__(self, run_id: _Optional[str] = ..., effect_key: _Optional[str] = ..., kind: _Optional[str] = ..., payload_json: _Optional[str] = ..., compensator_ref: _Optional[str] = ..., max_attempts: _Optional[int] = ..., app: _Optional[str] = ...) -> None: ...

class ListObligationsRequest(_message.Message):
    __slots__ = ("run_id", "only_unresolved", "status_filter", "cursor", "limit")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    ONLY_UNRESOLVED_FIELD_NUMBER: _ClassVar[int]
    STATUS_FILTER_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    only_unresolved: bool
    status_filter: ObligationStatus
    cursor: str
    limit: int
    def __init__(self, run_id: _Optional[str] = ..., only_unresolved: _Optional[bool] = ..., status_filter: _Optional[_Union[ObligationStatus, str]] = ..., cursor: _Optional[str] = ..., limit: _Optional[int] = ...) -> None: ...

class ListObligationsResponse(_message.Message):
    __slots__ = ("obligations", "next_cursor")
    OBLIGATIONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_CURSOR_FIELD_NUMBER: _ClassVar[int]
    obligations: _containers.RepeatedCompositeFieldContainer[ObligationRecord]
    next_cursor: str
    def __init__(self, obligations: _Optional[_Iterable[_Union[ObligationRecord, _Mapping]]] = ..., next_cursor: _Optional[str] = ...) -> None: ...

class ListUnresolvedObligationsRequest(_message.Message):
    __slots__ = ("limit", "now_ms", "include_pending", "include_stuck", "include_committed_expired", "app", "compensators")
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    NOW_MS_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_PENDING_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_STUCK_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_COMMITTED_EXPIRED_FIELD_NUMBER: _ClassVar[int]
    APP_FIELD_NUMBER: _ClassVar[int]
    COMPENSATORS_FIELD_NUMBER: _ClassVar[int]
    limit: int
    now_ms: int
    include_pending: bool
    include_stuck: bool
    include_committed_expired: bool
    app: str
    compensators: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, limit: _Optional[int] = ..., now_ms: _Optional[int] = ..., include_pending: _Optional[bool] = ..., include_stuck: _Optional[bool] = ..., include_committed_expired: _Optional[bool] = ..., app: _Optional[str] = ..., compensators: _Optional[_Iterable[str]] = ...) -> None: ...

class ClaimObligationRequest(_message.Message):
    __slots__ = ("run_id", "seq", "claimer", "lease_ttl_ms", "app")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    SEQ_FIELD_NUMBER: _ClassVar[int]
    CLAIMER_FIELD_NUMBER: _ClassVar[int]
    LEASE_TTL_MS_FIELD_NUMBER: _ClassVar[int]
    APP_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    seq: int
    claimer: str
    lease_ttl_ms: int
    app: str
    def __init__(self, run_id: _Optional[str] = ..., seq: _Optional[int] = ..., claimer: _Optional[str] = ..., lease_ttl_ms: _Optional[int] = ..., app: _Optional[str] = ...) -> None: ...

class ClaimObligationResponse(_message.Message):
    __slots__ = ("acquired", "obligation")
    ACQUIRED_FIELD_NUMBER: _ClassVar[int]
    OBLIGATION_FIELD_NUMBER: _ClassVar[int]
    acquired: bool
    obligation: ObligationRecord
    def __init__(self, acquired: _Optional[bool] = ..., obligation: _Optional[_Union[ObligationRecord, _Mapping]] = ...) -> None: ...

class RecordObligationAttemptRequest(_message.Message):
    __slots__ = ("run_id", "seq", "error", "next_attempt_at_ms", "attempt")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    SEQ_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    NEXT_ATTEMPT_AT_MS_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    seq: int
    error: str
    next_attempt_at_ms: int
    attempt: int
    def __init__(self, run_id: _Optional[str] = ..., seq: _Optional[int] = ..., error: _Optional[str] = ..., next_attempt_at_ms: _Optional[int] = ..., attempt: _Optional[int] = ...) -> None: ...

class ResolveObligationRequest(_message.Message):
    __slots__ = ("run_id", "seq", "status", "result_json", "attempt")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    SEQ_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    RESULT_JSON_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    seq: int
    status: ObligationStatus
    result_json: str
    attempt: int
    def __init__(self, run_id: _Optional[str] = ..., seq: _Optional[int] = ..., status: _Optional[_Union[ObligationStatus, str]] = ..., result_json: _Optional[str] = ..., attempt: _Optional[int] = ...) -> None: ...

class GetObligationRequest(_message.Message):
    __slots__ = ("run_id", "number")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    number: int
    def __init__(self, run_id: _Optional[str] = ..., number: _Optional[int] = ...) -> None: ...

class GetObligationResponse(_message.Message):
    __slots__ = ("found", "obligation")
    FOUND_FIELD_NUMBER: _ClassVar[int]
    OBLIGATION_FIELD_NUMBER: _ClassVar[int]
    found: bool
    obligation: ObligationRecord
    def __init__(self, found: _Optional[bool] = ..., obligation: _Optional[_Union[ObligationRecord, _Mapping]] = ...) -> None: ...

class RetryObligationRequest(_message.Message):
    __slots__ = ("run_id", "number")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    number: int
    def __init__(self, run_id: _Optional[str] = ..., number: _Optional[int] = ...) -> None: ...

class BudgetState(_message.Message):
    __slots__ = ("run_id", "usd_cap", "token_cap", "usd_spent", "tokens_spent", "usd_reserved", "tokens_reserved")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    USD_CAP_FIELD_NUMBER: _ClassVar[int]
    TOKEN_CAP_FIELD_NUMBER: _ClassVar[int]
    USD_SPENT_FIELD_NUMBER: _ClassVar[int]
    TOKENS_SPENT_FIELD_NUMBER: _ClassVar[int]
    USD_RESERVED_FIELD_NUMBER: _ClassVar[int]
    TOKENS_RESERVED_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    usd_cap: float
    token_cap: int
    usd_spent: float
    tokens_spent: int
    usd_reserved: float
    tokens_reserved: int
    def __init__(self, run_id: _Optional[str] = ..., usd_cap: _Optional[float] = ..., token_cap: _Optional[int] = ..., usd_spent: _Optional[float] = ..., tokens_spent: _Optional[int] = ..., usd_reserved: _Optional[float] = ..., tokens_reserved: _Optional[int] = ...) -> None: ...

class SetBudgetRequest(_message.Message):
    __slots__ = ("run_id", "usd_cap", "token_cap", "zero_is_a_cap")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    USD_CAP_FIELD_NUMBER: _ClassVar[int]
    TOKEN_CAP_FIELD_NUMBER: _ClassVar[int]
    ZERO_IS_A_CAP_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    usd_cap: float
    token_cap: int
    zero_is_a_cap: bool
    def __init__(self, run_id: _Optional[str] = ..., usd_cap: _Optional[float] = ..., token_cap: _Optional[int] = ..., zero_is_a_cap: _Optional[bool] = ...) -> None: ...

class AdmitBudgetRequest(_message.Message):
    __slots__ = ("run_id", "usd", "tokens")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    USD_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    usd: float
    tokens: int
    def __init__(self, run_id: _Optional[str] = ..., usd: _Optional[float] = ..., tokens: _Optional[int] = ...) -> None: ...

class AdmitBudgetResponse(_message.Message):
    __slots__ = ("admitted", "reason", "state")
    ADMITTED_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    admitted: bool
    reason: str
    state: BudgetState
    def __init__(self, admitted: _Optional[bool] = ..., reason: _Optional[str] = ..., state: _Optional[_Union[BudgetState, _Mapping]] = ...) -> None: ...

class ReserveBudgetRequest(_message.Message):
    __slots__ = ("run_id", "usd", "tokens", "reservation_id")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    USD_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    RESERVATION_ID_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    usd: float
    tokens: int
    reservation_id: str
    def __init__(self, run_id: _Optional[str] = ..., usd: _Optional[float] = ..., tokens: _Optional[int] = ..., reservation_id: _Optional[str] = ...) -> None: ...

class SettleBudgetRequest(_message.Message):
    __slots__ = ("run_id", "usd", "tokens", "reservation_id")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    USD_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    RESERVATION_ID_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    usd: float
    tokens: int
    reservation_id: str
    def __init__(self, run_id: _Optional[str] = ..., usd: _Optional[float] = ..., tokens: _Optional[int] = ..., reservation_id: _Optional[str] = ...) -> None: ...

class ChargeBudgetRequest(_message.Message):
    __slots__ = ("run_id", "usd", "tokens", "key")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    USD_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    usd: float
    tokens: int
    key: str
    def __init__(self, run_id: _Optional[str] = ..., usd: _Optional[float] = ..., tokens: _Optional[int] = ..., key: _Optional[str] = ...) -> None: ...

class GetBudgetRequest(_message.Message):
    __slots__ = ("run_id",)
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    def __init__(self, run_id: _Optional[str] = ...) -> None: ...

class GateRecord(_message.Message):
    __slots__ = ("run_id", "gate", "context_json", "resolutions", "waiting")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    GATE_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_JSON_FIELD_NUMBER: _ClassVar[int]
    RESOLUTIONS_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    gate: str
    context_json: str
    resolutions: _containers.RepeatedScalarFieldContainer[str]
    waiting: int
    def __init__(self, run_id: _Optional[str] = ..., gate: _Optional[str] = ..., context_json: _Optional[str] = ..., resolutions: _Optional[_Iterable[str]] = ..., waiting: _Optional[int] = ...) -> None: ...

class AwaitSignalRequest(_message.Message):
    __slots__ = ("run_id", "gate", "payload_json", "index", "fence")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    GATE_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_JSON_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    FENCE_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    gate: str
    payload_json: str
    index: int
    fence: int
    def __init__(self, run_id: _Optional[str] = ..., gate: _Optional[str] = ..., payload_json: _Optional[str] = ..., index: _Optional[int] = ..., fence: _Optional[int] = ...) -> None: ...

class AwaitSignalResponse(_message.Message):
    __slots__ = ("delivered", "resolution_json", "gate")
    DELIVERED_FIELD_NUMBER: _ClassVar[int]
    RESOLUTION_JSON_FIELD_NUMBER: _ClassVar[int]
    GATE_FIELD_NUMBER: _ClassVar[int]
    delivered: bool
    resolution_json: str
    gate: GateRecord
    def __init__(self, delivered: _Optional[bool] = ..., resolution_json: _Optional[str] = ..., gate: _Optional[_Union[GateRecord, _Mapping]] = ...) -> None: ...

class SendSignalRequest(_message.Message):
    __slots__ = ("run_id", "app_name", "user_id", "session_id", "gate", "resolution_json", "key")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    APP_NAME_FIELD_NUMBER: _ClassVar[int]
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    GATE_FIELD_NUMBER: _ClassVar[int]
    RESOLUTION_JSON_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    app_name: str
    user_id: str
    session_id: str
    gate: str
    resolution_json: str
    key: str
    def __init__(self, run_id: _Optional[str] = ..., app_name: _Optional[str] = ..., user_id: _Optional[str] = ..., session_id: _Optional[str] = ..., gate: _Optional[str] = ..., resolution_json: _Optional[str] = ..., key: _Optional[str] = ...) -> None: ...

class SendSignalResponse(_message.Message):
    __slots__ = ("accepted", "run_id", "run_status")
    ACCEPTED_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_STATUS_FIELD_NUMBER: _ClassVar[int]
    accepted: bool
    run_id: str
    run_status: RunStatus
    def __init__(self, accepted: _Optional[bool] = ..., run_id: _Optional[str] = ..., run_status: _Optional[_Union[RunStatus, str]] = ...) -> None: ...

class GetGateRequest(_message.Message):
    __slots__ = ("run_id", "gate")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    GATE_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    gate: str
    def __init__(self, run_id: _Optional[str] = ..., gate: _Optional[str] = ...) -> None: ...

class GetGateResponse(_message.Message):
    __slots__ = ("found", "gate")
    FOUND_FIELD_NUMBER: _ClassVar[int]
    GATE_FIELD_NUMBER: _ClassVar[int]
    found: bool
    gate: GateRecord
    def __init__(self, found: _Optional[bool] = ..., gate: _Optional[_Union[GateRecord, _Mapping]] = ...) -> None: ...

class TimerRecord(_message.Message):
    __slots__ = ("run_id", "timer_id", "fire_at_ms", "kind", "payload_json", "status", "claimer", "claim_expires_at_ms", "attempt", "app")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    TIMER_ID_FIELD_NUMBER: _ClassVar[int]
    FIRE_AT_MS_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_JSON_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    CLAIMER_FIELD_NUMBER: _ClassVar[int]
    CLAIM_EXPIRES_AT_MS_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    APP_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    timer_id: str
    fire_at_ms: int
    kind: str
    payload_json: str
    status: TimerStatus
    claimer: str
    claim_expires_at_ms: int
    attempt: int
    app: str
    def __init__(self, run_id: _Optional[str] = ..., timer_id: _Optional[str] = ..., fire_at_ms: _Optional[int] = ..., kind: _Optional[str] = ..., payload_json: _Optional[str] = ..., status: _Optional[_Union[TimerStatus, str]] = ..., claimer: _Optional[str] = ..., claim_expires_at_ms: _Optional[int] = ..., attempt: _Optional[int] = ..., app: _Optional[str] = ...) -> None: ...

class SetTimerRequest(_message.Message):
    __slots__ = ("run_id", "timer_id", "fire_at_ms", "kind", "payload_json", "app")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    TIMER_ID_FIELD_NUMBER: _ClassVar[int]
    FIRE_AT_MS_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_JSON_FIELD_NUMBER: _ClassVar[int]
    APP_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    timer_id: str
    fire_at_ms: int
    kind: str
    payload_json: str
    app: str
    def __init__(self, run_id: _Optional[str] = ..., timer_id: _Optional[str] = ..., fire_at_ms: _Optional[int] = ..., kind: _Optional[str] = ..., payload_json: _Optional[str] = ..., app: _Optional[str] = ...) -> None: ...

class CancelTimerRequest(_message.Message):
    __slots__ = ("run_id", "timer_id")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    TIMER_ID_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    timer_id: str
    def __init__(self, run_id: _Optional[str] = ..., timer_id: _Optional[str] = ...) -> None: ...

class CancelTimerResponse(_message.Message):
    __slots__ = ("cancelled",)
    CANCELLED_FIELD_NUMBER: _ClassVar[int]
    cancelled: bool
    def __init__(self, cancelled: _Optional[bool] = ...) -> None: ...

class ListDueTimersRequest(_message.Message):
    __slots__ = ("now_ms", "limit", "claim", "claimer", "lease_ttl_ms", "app", "kinds")
    NOW_MS_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    CLAIM_FIELD_NUMBER: _ClassVar[int]
    CLAIMER_FIELD_NUMBER: _ClassVar[int]
    LEASE_TTL_MS_FIELD_NUMBER: _ClassVar[int]
    APP_FIELD_NUMBER: _ClassVar[int]
    KINDS_FIELD_NUMBER: _ClassVar[int]
    now_ms: int
    limit: int
    claim: bool
    claimer: str
    lease_ttl_ms: int
    app: str
    kinds: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, now_ms: _Optional[int] = ..., limit: _Optional[int] = ..., claim: _Optional[bool] = ..., claimer: _Optional[str] = ..., lease_ttl_ms: _Optional[int] = ..., app: _Optional[str] = ..., kinds: _Optional[_Iterable[str]] = ...) -> None: ...

class ListDueTimersResponse(_message.Message):
    __slots__ = ("timers",)
    TIMERS_FIELD_NUMBER: _ClassVar[int]
    timers: _containers.RepeatedCompositeFieldContainer[TimerRecord]
    def __init__(self, timers: _Optional[_Iterable[_Union[TimerRecord, _Mapping]]] = ...) -> None: ...

class ClaimTimerRequest(_message.Message):
    __slots__ = ("run_id", "timer_id", "claimer", "lease_ttl_ms", "app")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    TIMER_ID_FIELD_NUMBER: _ClassVar[int]
    CLAIMER_FIELD_NUMBER: _ClassVar[int]
    LEASE_TTL_MS_FIELD_NUMBER: _ClassVar[int]
    APP_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    timer_id: str
    claimer: str
    lease_ttl_ms: int
    app: str
    def __init__(self, run_id: _Optional[str] = ..., timer_id: _Optional[str] = ..., claimer: _Optional[str] = ..., lease_ttl_ms: _Optional[int] = ..., app: _Optional[str] = ...) -> None: ...

class ClaimTimerResponse(_message.Message):
    __slots__ = ("acquired", "timer")
    ACQUIRED_FIELD_NUMBER: _ClassVar[int]
    TIMER_FIELD_NUMBER: _ClassVar[int]
    acquired: bool
    timer: TimerRecord
    def __init__(self, acquired: _Optional[bool] = ..., timer: _Optional[_Union[TimerRecord, _Mapping]] = ...) -> None: ...

class FireTimerRequest(_message.Message):
    __slots__ = ("run_id", "timer_id", "attempt")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    TIMER_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    timer_id: str
    attempt: int
    def __init__(self, run_id: _Optional[str] = ..., timer_id: _Optional[str] = ..., attempt: _Optional[int] = ...) -> None: ...

class GetTimerRequest(_message.Message):
    __slots__ = ("run_id", "timer_id")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    TIMER_ID_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    timer_id: str
    def __init__(self, run_id: _Optional[str] = ..., timer_id: _Optional[str] = ...) -> None: ...

class GetTimerResponse(_message.Message):
    __slots__ = ("found", "timer")
    FOUND_FIELD_NUMBER: _ClassVar[int]
    TIMER_FIELD_NUMBER: _ClassVar[int]
    found: bool
    timer: TimerRecord
    def __init__(self, found: _Optional[bool] = ..., timer: _Optional[_Union[TimerRecord, _Mapping]] = ...) -> None: ...

class ListTimersRequest(_message.Message):
    __slots__ = ("run_id", "cursor", "limit", "status", "kind")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    cursor: str
    limit: int
    status: TimerStatus
    kind: str
    def __init__(self, run_id: _Optional[str] = ..., cursor: _Optional[str] = ..., limit: _Optional[int] = ..., status: _Optional[_Union[TimerStatus, str]] = ..., kind: _Optional[str] = ...) -> None: ...

class ListTimersResponse(_message.Message):
    __slots__ = ("timers", "next_cursor")
    TIMERS_FIELD_NUMBER: _ClassVar[int]
    NEXT_CURSOR_FIELD_NUMBER: _ClassVar[int]
    timers: _containers.RepeatedCompositeFieldContainer[TimerRecord]
    next_cursor: str
    def __init__(self, timers: _Optional[_Iterable[_Union[TimerRecord, _Mapping]]] = ..., next_cursor: _Optional[str] = ...) -> None: ...

class ListGatesRequest(_message.Message):
    __slots__ = ("run_id", "cursor", "limit")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    cursor: str
    limit: int
    def __init__(self, run_id: _Optional[str] = ..., cursor: _Optional[str] = ..., limit: _Optional[int] = ...) -> None: ...

class ListGatesResponse(_message.Message):
    __slots__ = ("gates", "next_cursor")
    GATES_FIELD_NUMBER: _ClassVar[int]
    NEXT_CURSOR_FIELD_NUMBER: _ClassVar[int]
    gates: _containers.RepeatedCompositeFieldContainer[GateRecord]
    next_cursor: str
    def __init__(self, gates: _Optional[_Iterable[_Union[GateRecord, _Mapping]]] = ..., next_cursor: _Optional[str] = ...) -> None: ...

class ValueRecord(_message.Message):
    __slots__ = ("namespace", "key", "value_json", "version", "ts_ms", "writer", "deleted")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_JSON_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    TS_MS_FIELD_NUMBER: _ClassVar[int]
    WRITER_FIELD_NUMBER: _ClassVar[int]
    DELETED_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    key: str
    value_json: str
    version: int
    ts_ms: int
    writer: str
    deleted: bool
    def __init__(self, namespace: _Optional[str] = ..., key: _Optional[str] = ..., value_json: _Optional[str] = ..., version: _Optional[int] = ..., ts_ms: _Optional[int] = ..., writer: _Optional[str] = ..., deleted: _Optional[bool] = ...) -> None: ...

class WriteValueRequest(_message.Message):
    __slots__ = ("namespace", "key", "value_json", "if_version", "writer", "idempotency_key", "if_exists")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_JSON_FIELD_NUMBER: _ClassVar[int]
    IF_VERSION_FIELD_NUMBER: _ClassVar[int]
    WRITER_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    IF_EXISTS_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    key: str
    value_json: str
    if_version: int
    writer: str
    idempotency_key: str
    if_exists: bool
    def __init__(self, namespace: _Optional[str] = ..., key: _Optional[str] = ..., value_json: _Optional[str] = ..., if_version: _Optional[int] = ..., writer: _Optional[str] = ..., idempotency_key: _Optional[str] = ..., if_exists: _Optional[bool] = ...) -> None: ...

class GetValueRequest(_message.Message):
    __slots__ = ("namespace", "key")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    key: str
    def __init__(self, namespace: _Optional[str] = ..., key: _Optional[str] = ...) -> None: ...

class GetValueResponse(_message.Message):
    __slots__ = ("found", "value")
    FOUND_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    found: bool
    value: ValueRecord
    def __init__(self, found: _Optional[bool] = ..., value: _Optional[_Union[ValueRecord, _Mapping]] = ...) -> None: ...

class DeleteValueRequest(_message.Message):
    __slots__ = ("namespace", "key", "if_version", "writer", "idempotency_key")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    IF_VERSION_FIELD_NUMBER: _ClassVar[int]
    WRITER_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    key: str
    if_version: int
    writer: str
    idempotency_key: str
    def __init__(self, namespace: _Optional[str] = ..., key: _Optional[str] = ..., if_version: _Optional[int] = ..., writer: _Optional[str] = ..., idempotency_key: _Optional[str] = ...) -> None: ...

class DeleteValueResponse(_message.Message):
    __slots__ = ("deleted", "version", "value")
    DELETED_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    deleted: bool
    version: int
    value: ValueRecord
    def __init__(self, deleted: _Optional[bool] = ..., version: _Optional[int] = ..., value: _Optional[_Union[ValueRecord, _Mapping]] = ...) -> None: ...

class ListValuesRequest(_message.Message):
    __slots__ = ("namespace", "cursor", "limit")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    cursor: str
    limit: int
    def __init__(self, namespace: _Optional[str] = ..., cursor: _Optional[str] = ..., limit: _Optional[int] = ...) -> None: ...

class ListValuesResponse(_message.Message):
    __slots__ = ("values", "next_cursor")
    VALUES_FIELD_NUMBER: _ClassVar[int]
    NEXT_CURSOR_FIELD_NUMBER: _ClassVar[int]
    values: _containers.RepeatedCompositeFieldContainer[ValueRecord]
    next_cursor: str
    def __init__(self, values: _Optional[_Iterable[_Union[ValueRecord, _Mapping]]] = ..., next_cursor: _Optional[str] = ...) -> None: ...

class WatchValueRequest(_message.Message):
    __slots__ = ("namespace", "key", "from_version")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    FROM_VERSION_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    key: str
    from_version: int
    def __init__(self, namespace: _Optional[str] = ..., key: _Optional[str] = ..., from_version: _Optional[int] = ...) -> None: ...

class ValueChange(_message.Message):
    __slots__ = ("value", "prev_version", "prev_value_json")
    VALUE_FIELD_NUMBER: _ClassVar[int]
    PREV_VERSION_FIELD_NUMBER: _ClassVar[int]
    PREV_VALUE_JSON_FIELD_NUMBER: _ClassVar[int]
    value: ValueRecord
    prev_version: int
    prev_value_json: str
    def __init__(self, value: _Optional[_Union[ValueRecord, _Mapping]] = ..., prev_version: _Optional[int] = ..., prev_value_json: _Optional[str] = ...) -> None: ...

class SessionEvent(_message.Message):
    __slots__ = ("id", "invocation_id", "author", "branch", "content_json", "actions_json", "timestamp_ms")
    ID_FIELD_NUMBER: _ClassVar[int]
    INVOCATION_ID_FIELD_NUMBER: _ClassVar[int]
    AUTHOR_FIELD_NUMBER: _ClassVar[int]
    BRANCH_FIELD_NUMBER: _ClassVar[int]
    CONTENT_JSON_FIELD_NUMBER: _ClassVar[int]
    ACTIONS_JSON_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_MS_FIELD_NUMBER: _ClassVar[int]
    id: str
    invocation_id: str
    author: str
    branch: str
    content_json: str
    actions_json: str
    timestamp_ms: int
    def __init__(self, id: _Optional[str] = ..., invocation_id: _Optional[str] = ..., author: _Optional[str] = ..., branch: _Optional[str] = ..., content_json: _Optional[str] = ..., actions_json: _Optional[str] = ..., timestamp_ms: _Optional[int] = ...) -> None: ...

class Session(_message.Message):
    __slots__ = ("app_name", "user_id", "session_id", "state_json", "events", "event_count", "created_at_ms", "updated_at_ms", "deleted", "life")
    APP_NAME_FIELD_NUMBER: _ClassVar[int]
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    STATE_JSON_FIELD_NUMBER: _ClassVar[int]
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    EVENT_COUNT_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_MS_FIELD_NUMBER: _ClassVar[int]
    UPDATED_AT_MS_FIELD_NUMBER: _ClassVar[int]
    DELETED_FIELD_NUMBER: _ClassVar[int]
    LIFE_FIELD_NUMBER: _ClassVar[int]
    app_name: str
    user_id: str
    session_id: str
    state_json: str
    events: _containers.RepeatedCompositeFieldContainer[SessionEvent]
    event_count: int
    created_at_ms: int
    updated_at_ms: int
    deleted: bool
    life: int
    def __init__(self, app_name: _Optional[str] = ..., user_id: _Optional[str] = ..., session_id: _Optional[str] = ..., state_json: _Optional[str] = ..., events: _Optional[_Iterable[_Union[SessionEvent, _Mapping]]] = ..., event_count: _Optional[int] = ..., created_at_ms: _Optional[int] = ..., updated_at_ms: _Optional[int] = ..., deleted: _Optional[bool] = ..., life: _Optional[int] = ...) -> None: ...

class CreateSessionRequest(_message.Message):
    __slots__ = ("app_name", "user_id", "session_id", "state_json")
    APP_NAME_FIELD_NUMBER: _ClassVar[int]
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    STATE_JSON_FIELD_NUMBER: _ClassVar[int]
    app_name: str
    user_id: str
    session_id: str
    state_json: str
    def __init__(self, app_name: _Optional[str] = ..., user_id: _Optional[str] = ..., session_id: _Optional[str] = ..., state_json: _Optional[str] = ...) -> None: ...

class GetSessionRequest(_message.Message):
    __slots__ = ("app_name", "user_id", "session_id", "max_events", "before")
    APP_NAME_FIELD_NUMBER: _ClassVar[int]
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    MAX_EVENTS_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    app_name: str
    user_id: str
    session_id: str
    max_events: int
    before: int
    def __init__(self, app_name: _Optional[str] = ..., user_id: _Optional[str] = ..., session_id: _Optional[str] = ..., max_events: _Optional[int] = ..., before: _Optional[int] = ...) -> None: ...

class ListSessionsRequest(_message.Message):
    __slots__ = ("app_name", "user_id", "cursor", "limit")
    APP_NAME_FIELD_NUMBER: _ClassVar[int]
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    app_name: str
    user_id: str
    cursor: str
    limit: int
    def __init__(self, app_name: _Optional[str] = ..., user_id: _Optional[str] = ..., cursor: _Optional[str] = ..., limit: _Optional[int] = ...) -> None: ...

class ListSessionsResponse(_message.Message):
    __slots__ = ("sessions", "next_cursor")
    SESSIONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_CURSOR_FIELD_NUMBER: _ClassVar[int]
    sessions: _containers.RepeatedCompositeFieldContainer[Session]
    next_cursor: str
    def __init__(self, sessions: _Optional[_Iterable[_Union[Session, _Mapping]]] = ..., next_cursor: _Optional[str] = ...) -> None: ...

class DeleteSessionRequest(_message.Message):
    __slots__ = ("app_name", "user_id", "session_id")
    APP_NAME_FIELD_NUMBER: _ClassVar[int]
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    app_name: str
    user_id: str
    session_id: str
    def __init__(self, app_name: _Optional[str] = ..., user_id: _Optional[str] = ..., session_id: _Optional[str] = ...) -> None: ...

class DeleteSessionResponse(_message.Message):
    __slots__ = ("deleted",)
    DELETED_FIELD_NUMBER: _ClassVar[int]
    deleted: bool
    def __init__(self, deleted: _Optional[bool] = ...) -> None: ...

class AppendEventRequest(_message.Message):
    __slots__ = ("app_name", "user_id", "session_id", "event", "state_delta_json")
    APP_NAME_FIELD_NUMBER: _ClassVar[int]
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    EVENT_FIELD_NUMBER: _ClassVar[int]
    STATE_DELTA_JSON_FIELD_NUMBER: _ClassVar[int]
    app_name: str
    user_id: str
    session_id: str
    event: SessionEvent
    state_delta_json: str
    def __init__(self, app_name: _Optional[str] = ..., user_id: _Optional[str] = ..., session_id: _Optional[str] = ..., event: _Optional[_Union[SessionEvent, _Mapping]] = ..., state_delta_json: _Optional[str] = ...) -> None: ...

class AppendEventResponse(_message.Message):
    __slots__ = ("event", "session")
    EVENT_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    event: SessionEvent
    session: Session
    def __init__(self, event: _Optional[_Union[SessionEvent, _Mapping]] = ..., session: _Optional[_Union[Session, _Mapping]] = ...) -> None: ...

class EventEntry(_message.Message):
    __slots__ = ("run_id", "seq", "kind", "payload_json", "ts_ms", "global_seq", "subject", "schema_version", "trace_id", "span_id", "parent_span_id", "type", "event_id", "cause", "depth", "epoch", "attributes_json", "payload_bytes", "crc")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    SEQ_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_JSON_FIELD_NUMBER: _ClassVar[int]
    TS_MS_FIELD_NUMBER: _ClassVar[int]
    GLOBAL_SEQ_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_VERSION_FIELD_NUMBER: _ClassVar[int]
    TRACE_ID_FIELD_NUMBER: _ClassVar[int]
    SPAN_ID_FIELD_NUMBER: _ClassVar[int]
    PARENT_SPAN_ID_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    DEPTH_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTES_JSON_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_BYTES_FIELD_NUMBER: _ClassVar[int]
    CRC_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    seq: int
    kind: str
    payload_json: str
    ts_ms: int
    global_seq: int
    subject: str
    schema_version: int
    trace_id: str
    span_id: str
    parent_span_id: str
    type: str
    event_id: str
    cause: int
    depth: int
    epoch: int
    attributes_json: str
    payload_bytes: bytes
    crc: int
    def __init__(self, run_id: _Optional[str] = ..., seq: _Optional[int] = ..., kind: _Optional[str] = ..., payload_json: _Optional[str] = ..., ts_ms: _Optional[int] = ..., global_seq: _Optional[int] = ..., subject: _Optional[str] = ..., schema_version: _Optional[int] = ..., trace_id: _Optional[str] = ..., span_id: _Optional[str] = ..., parent_span_id: _Optional[str] = ..., type: _Optional[str] = ..., event_id: _Optional[str] = ..., cause: _Optional[int] = ..., depth: _Optional[int] = ..., epoch: _Optional[int] = ..., attributes_json: _Optional[str] = ..., payload_bytes: _Optional[bytes] = ..., crc: _Optional[int] = ...) -> None: ...

class Event(_message.Message):
    __slots__ = ("run_id", "type", "payload_json", "subject", "schema_version", "event_id", "cause", "content_type", "payload_bytes", "attributes", "traceparent", "parent_span_id")
    class AttributesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_JSON_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_VERSION_FIELD_NUMBER: _ClassVar[int]
    EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    CONTENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_BYTES_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    TRACEPARENT_FIELD_NUMBER: _ClassVar[int]
    PARENT_SPAN_ID_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    type: str
    payload_json: str
    subject: str
    schema_version: int
    event_id: str
    cause: int
    content_type: str
    payload_bytes: bytes
    attributes: _containers.ScalarMap[str, str]
    traceparent: str
    parent_span_id: str
    def __init__(self, run_id: _Optional[str] = ..., type: _Optional[str] = ..., payload_json: _Optional[str] = ..., subject: _Optional[str] = ..., schema_version: _Optional[int] = ..., event_id: _Optional[str] = ..., cause: _Optional[int] = ..., content_type: _Optional[str] = ..., payload_bytes: _Optional[bytes] = ..., attributes: _Optional[_Mapping[str, str]] = ..., traceparent: _Optional[str] = ..., parent_span_id: _Optional[str] = ...) -> None: ...

class AppendRequest(_message.Message):
    __slots__ = ("events", "key", "expected_seq", "open")
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_SEQ_FIELD_NUMBER: _ClassVar[int]
    OPEN_FIELD_NUMBER: _ClassVar[int]
    events: _containers.RepeatedCompositeFieldContainer[Event]
    key: str
    expected_seq: int
    open: bool
    def __init__(self, events: _Optional[_Iterable[_Union[Event, _Mapping]]] = ..., key: _Optional[str] = ..., expected_seq: _Optional[int] = ..., open: _Optional[bool] = ...) -> None: ...

class Position(_message.Message):
    __slots__ = ("seq", "global_seq", "ts_ms", "depth", "event_id")
    SEQ_FIELD_NUMBER: _ClassVar[int]
    GLOBAL_SEQ_FIELD_NUMBER: _ClassVar[int]
    TS_MS_FIELD_NUMBER: _ClassVar[int]
    DEPTH_FIELD_NUMBER: _ClassVar[int]
    EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    seq: int
    global_seq: int
    ts_ms: int
    depth: int
    event_id: str
    def __init__(self, seq: _Optional[int] = ..., global_seq: _Optional[int] = ..., ts_ms: _Optional[int] = ..., depth: _Optional[int] = ..., event_id: _Optional[str] = ...) -> None: ...

class AppendResponse(_message.Message):
    __slots__ = ("entries", "epoch")
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedCompositeFieldContainer[Position]
    epoch: int
    def __init__(self, entries: _Optional[_Iterable[_Union[Position, _Mapping]]] = ..., epoch: _Optional[int] = ...) -> None: ...

class SubscribeEventsRequest(_message.Message):
    __slots__ = ("from_ts_ms", "run_id", "kind", "subject_pattern", "from_global_seq", "epoch")
    FROM_TS_MS_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_PATTERN_FIELD_NUMBER: _ClassVar[int]
    FROM_GLOBAL_SEQ_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    from_ts_ms: int
    run_id: str
    kind: str
    subject_pattern: str
    from_global_seq: int
    epoch: int
    def __init__(self, from_ts_ms: _Optional[int] = ..., run_id: _Optional[str] = ..., kind: _Optional[str] = ..., subject_pattern: _Optional[str] = ..., from_global_seq: _Optional[int] = ..., epoch: _Optional[int] = ...) -> None: ...

class SubscribeBySubjectRequest(_message.Message):
    __slots__ = ("subject_pattern", "predicate_cel", "from_global_seq", "epoch")
    SUBJECT_PATTERN_FIELD_NUMBER: _ClassVar[int]
    PREDICATE_CEL_FIELD_NUMBER: _ClassVar[int]
    FROM_GLOBAL_SEQ_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    subject_pattern: str
    predicate_cel: str
    from_global_seq: int
    epoch: int
    def __init__(self, subject_pattern: _Optional[str] = ..., predicate_cel: _Optional[str] = ..., from_global_seq: _Optional[int] = ..., epoch: _Optional[int] = ...) -> None: ...

class TailBatchesRequest(_message.Message):
    __slots__ = ("subject_pattern", "predicate_cel", "from_global_seq", "run_id", "from_seq", "max_entries", "no_follow", "epoch")
    SUBJECT_PATTERN_FIELD_NUMBER: _ClassVar[int]
    PREDICATE_CEL_FIELD_NUMBER: _ClassVar[int]
    FROM_GLOBAL_SEQ_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    FROM_SEQ_FIELD_NUMBER: _ClassVar[int]
    MAX_ENTRIES_FIELD_NUMBER: _ClassVar[int]
    NO_FOLLOW_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    subject_pattern: str
    predicate_cel: str
    from_global_seq: int
    run_id: str
    from_seq: int
    max_entries: int
    no_follow: bool
    epoch: int
    def __init__(self, subject_pattern: _Optional[str] = ..., predicate_cel: _Optional[str] = ..., from_global_seq: _Optional[int] = ..., run_id: _Optional[str] = ..., from_seq: _Optional[int] = ..., max_entries: _Optional[int] = ..., no_follow: _Optional[bool] = ..., epoch: _Optional[int] = ...) -> None: ...

class StreamEnd(_message.Message):
    __slots__ = ("reason", "last_id", "state")
    REASON_FIELD_NUMBER: _ClassVar[int]
    LAST_ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    reason: str
    last_id: int
    state: str
    def __init__(self, reason: _Optional[str] = ..., last_id: _Optional[int] = ..., state: _Optional[str] = ...) -> None: ...

class EventBatch(_message.Message):
    __slots__ = ("entries", "end")
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedCompositeFieldContainer[EventEntry]
    end: StreamEnd
    def __init__(self, entries: _Optional[_Iterable[_Union[EventEntry, _Mapping]]] = ..., end: _Optional[_Union[StreamEnd, _Mapping]] = ...) -> None: ...

class Reaction(_message.Message):
    __slots__ = ("reaction_id", "name", "subject_pattern", "predicate_cel", "handler_kind", "agent_app", "publish_target", "max_concurrency", "rate_limit_per_s", "debounce_ms", "retry_max", "retry_backoff_ms", "dlq_after_n", "num_shards", "created_at_ms", "deleted", "bootstrap_from_head", "timeout_ms", "paused", "last_global_seq", "errors", "last_error", "with_progress", "lag")
    REACTION_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_PATTERN_FIELD_NUMBER: _ClassVar[int]
    PREDICATE_CEL_FIELD_NUMBER: _ClassVar[int]
    HANDLER_KIND_FIELD_NUMBER: _ClassVar[int]
    AGENT_APP_FIELD_NUMBER: _ClassVar[int]
    PUBLISH_TARGET_FIELD_NUMBER: _ClassVar[int]
    MAX_CONCURRENCY_FIELD_NUMBER: _ClassVar[int]
    RATE_LIMIT_PER_S_FIELD_NUMBER: _ClassVar[int]
    DEBOUNCE_MS_FIELD_NUMBER: _ClassVar[int]
    RETRY_MAX_FIELD_NUMBER: _ClassVar[int]
    RETRY_BACKOFF_MS_FIELD_NUMBER: _ClassVar[int]
    DLQ_AFTER_N_FIELD_NUMBER: _ClassVar[int]
    NUM_SHARDS_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_MS_FIELD_NUMBER: _ClassVar[int]
    DELETED_FIELD_NUMBER: _ClassVar[int]
    BOOTSTRAP_FROM_HEAD_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    PAUSED_FIELD_NUMBER: _ClassVar[int]
    LAST_GLOBAL_SEQ_FIELD_NUMBER: _ClassVar[int]
    ERRORS_FIELD_NUMBER: _ClassVar[int]
    LAST_ERROR_FIELD_NUMBER: _ClassVar[int]
    WITH_PROGRESS_FIELD_NUMBER: _ClassVar[int]
    LAG_FIELD_NUMBER: _ClassVar[int]
    reaction_id: str
    name: str
    subject_pattern: str
    predicate_cel: str
    handler_kind: HandlerKind
    agent_app: str
    publish_target: str
    max_concurrency: int
    rate_limit_per_s: int
    debounce_ms: int
    retry_max: int
    retry_backoff_ms: int
    dlq_after_n: int
    num_shards: int
    created_at_ms: int
    deleted: bool
    bootstrap_from_head: bool
    timeout_ms: int
    paused: str
    last_global_seq: int
    errors: int
    last_error: str
    with_progress: bool
    lag: int
    def __init__(self, reaction_id: _Optional[str] = ..., name: _Optional[str] = ..., subject_pattern: _Optional[str] = ..., predicate_cel: _Optional[str] = ..., handler_kind: _Optional[_Union[HandlerKind, str]] = ..., agent_app: _Optional[str] = ..., publish_target: _Optional[str] = ..., max_concurrency: _Optional[int] = ..., rate_limit_per_s: _Optional[int] = ..., debounce_ms: _Optional[int] = ..., retry_max: _Optional[int] = ..., retry_backoff_ms: _Optional[int] = ..., dlq_after_n: _Optional[int] = ..., num_shards: _Optional[int] = ..., created_at_ms: _Optional[int] = ..., deleted: _Optional[bool] = ..., bootstrap_from_head: _Optional[bool] = ..., timeout_ms: _Optional[int] = ..., paused: _Optional[str] = ..., last_global_seq: _Optional[int] = ..., errors: _Optional[int] = ..., last_error: _Optional[str] = ..., with_progress: _Optional[bool] = ..., lag: _Optional[int] = ...) -> None: ...

class DeregisterReactionRequest(_message.Message):
    __slots__ = ("reaction_id",)
    REACTION_ID_FIELD_NUMBER: _ClassVar[int]
    reaction_id: str
    def __init__(self, reaction_id: _Optional[str] = ...) -> None: ...

class DeregisterReactionResponse(_message.Message):
    __slots__ = ("deregistered",)
    DEREGISTERED_FIELD_NUMBER: _ClassVar[int]
    deregistered: bool
    def __init__(self, deregistered: _Optional[bool] = ...) -> None: ...

class ListReactionsRequest(_message.Message):
    __slots__ = ("subject_pattern", "cursor", "limit", "with_progress")
    SUBJECT_PATTERN_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    WITH_PROGRESS_FIELD_NUMBER: _ClassVar[int]
    subject_pattern: str
    cursor: str
    limit: int
    with_progress: bool
    def __init__(self, subject_pattern: _Optional[str] = ..., cursor: _Optional[str] = ..., limit: _Optional[int] = ..., with_progress: _Optional[bool] = ...) -> None: ...

class ListReactionsResponse(_message.Message):
    __slots__ = ("reactions", "next_cursor")
    REACTIONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_CURSOR_FIELD_NUMBER: _ClassVar[int]
    reactions: _containers.RepeatedCompositeFieldContainer[Reaction]
    next_cursor: str
    def __init__(self, reactions: _Optional[_Iterable[_Union[Reaction, _Mapping]]] = ..., next_cursor: _Optional[str] = ...) -> None: ...

class GetReactionRequest(_message.Message):
    __slots__ = ("reaction_id",)
    REACTION_ID_FIELD_NUMBER: _ClassVar[int]
    reaction_id: str
    def __init__(self, reaction_id: _Optional[str] = ...) -> None: ...

class PauseReactionRequest(_message.Message):
    __slots__ = ("reaction_id", "reason")
    REACTION_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    reaction_id: str
    reason: str
    def __init__(self, reaction_id: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class ResumeReactionRequest(_message.Message):
    __slots__ = ("reaction_id",)
    REACTION_ID_FIELD_NUMBER: _ClassVar[int]
    reaction_id: str
    def __init__(self, reaction_id: _Optional[str] = ...) -> None: ...

class ExplainReactionRequest(_message.Message):
    __slots__ = ("reaction_id", "global_seq")
    REACTION_ID_FIELD_NUMBER: _ClassVar[int]
    GLOBAL_SEQ_FIELD_NUMBER: _ClassVar[int]
    reaction_id: str
    global_seq: int
    def __init__(self, reaction_id: _Optional[str] = ..., global_seq: _Optional[int] = ...) -> None: ...

class LifecycleEvent(_message.Message):
    __slots__ = ("global_seq", "ts_ms", "type", "attempts", "error", "reason", "paused")
    GLOBAL_SEQ_FIELD_NUMBER: _ClassVar[int]
    TS_MS_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    PAUSED_FIELD_NUMBER: _ClassVar[int]
    global_seq: int
    ts_ms: int
    type: str
    attempts: int
    error: str
    reason: str
    paused: str
    def __init__(self, global_seq: _Optional[int] = ..., ts_ms: _Optional[int] = ..., type: _Optional[str] = ..., attempts: _Optional[int] = ..., error: _Optional[str] = ..., reason: _Optional[str] = ..., paused: _Optional[str] = ...) -> None: ...

class PredicatePart(_message.Message):
    __slots__ = ("position", "text", "value", "error")
    POSITION_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    position: str
    text: str
    value: str
    error: str
    def __init__(self, position: _Optional[str] = ..., text: _Optional[str] = ..., value: _Optional[str] = ..., error: _Optional[str] = ...) -> None: ...

class Verdict(_message.Message):
    __slots__ = ("matched", "error")
    MATCHED_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    matched: bool
    error: str
    def __init__(self, matched: _Optional[bool] = ..., error: _Optional[str] = ...) -> None: ...

class ExplainReactionResponse(_message.Message):
    __slots__ = ("reaction_id", "global_seq", "subject", "outcome", "definition", "active", "reason", "subject_matched", "verdict", "parts", "depth", "registrations", "last_global_seq", "task", "life")
    REACTION_ID_FIELD_NUMBER: _ClassVar[int]
    GLOBAL_SEQ_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    DEFINITION_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_MATCHED_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    DEPTH_FIELD_NUMBER: _ClassVar[int]
    REGISTRATIONS_FIELD_NUMBER: _ClassVar[int]
    LAST_GLOBAL_SEQ_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    LIFE_FIELD_NUMBER: _ClassVar[int]
    reaction_id: str
    global_seq: int
    subject: str
    outcome: MatchOutcome
    definition: Reaction
    active: bool
    reason: str
    subject_matched: bool
    verdict: Verdict
    parts: _containers.RepeatedCompositeFieldContainer[PredicatePart]
    depth: int
    registrations: _containers.RepeatedCompositeFieldContainer[LifecycleEvent]
    last_global_seq: int
    task: Task
    life: _containers.RepeatedCompositeFieldContainer[LifecycleEvent]
    def __init__(self, reaction_id: _Optional[str] = ..., global_seq: _Optional[int] = ..., subject: _Optional[str] = ..., outcome: _Optional[_Union[MatchOutcome, str]] = ..., definition: _Optional[_Union[Reaction, _Mapping]] = ..., active: _Optional[bool] = ..., reason: _Optional[str] = ..., subject_matched: _Optional[bool] = ..., verdict: _Optional[_Union[Verdict, _Mapping]] = ..., parts: _Optional[_Iterable[_Union[PredicatePart, _Mapping]]] = ..., depth: _Optional[int] = ..., registrations: _Optional[_Iterable[_Union[LifecycleEvent, _Mapping]]] = ..., last_global_seq: _Optional[int] = ..., task: _Optional[_Union[Task, _Mapping]] = ..., life: _Optional[_Iterable[_Union[LifecycleEvent, _Mapping]]] = ...) -> None: ...

class Task(_message.Message):
    __slots__ = ("task_id", "reaction_id", "shard", "source_run_id", "source_global_seq", "subject", "payload_json", "status", "attempts", "next_attempt_at_ms", "lease_owner", "lease_expires_at_ms", "last_error", "created_at_ms", "trace_id", "parent_span_id", "attempt", "source_seq", "kind", "type", "schema_version", "ts_ms", "prev_value_json", "coalesced", "completed_at_ms")
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    REACTION_ID_FIELD_NUMBER: _ClassVar[int]
    SHARD_FIELD_NUMBER: _ClassVar[int]
    SOURCE_RUN_ID_FIELD_NUMBER: _ClassVar[int]
    SOURCE_GLOBAL_SEQ_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_JSON_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_ATTEMPT_AT_MS_FIELD_NUMBER: _ClassVar[int]
    LEASE_OWNER_FIELD_NUMBER: _ClassVar[int]
    LEASE_EXPIRES_AT_MS_FIELD_NUMBER: _ClassVar[int]
    LAST_ERROR_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_MS_FIELD_NUMBER: _ClassVar[int]
    TRACE_ID_FIELD_NUMBER: _ClassVar[int]
    PARENT_SPAN_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    SOURCE_SEQ_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_VERSION_FIELD_NUMBER: _ClassVar[int]
    TS_MS_FIELD_NUMBER: _ClassVar[int]
    PREV_VALUE_JSON_FIELD_NUMBER: _ClassVar[int]
    COALESCED_FIELD_NUMBER: _ClassVar[int]
    COMPLETED_AT_MS_FIELD_NUMBER: _ClassVar[int]
    task_id: str
    reaction_id: str
    shard: int
    source_run_id: str
    source_global_seq: int
    subject: str
    payload_json: str
    status: TaskStatus
    attempts: int
    next_attempt_at_ms: int
    lease_owner: str
    lease_expires_at_ms: int
    last_error: str
    created_at_ms: int
    trace_id: str
    parent_span_id: str
    attempt: int
    source_seq: int
    kind: str
    type: str
    schema_version: int
    ts_ms: int
    prev_value_json: str
    coalesced: int
    completed_at_ms: int
    def __init__(self, task_id: _Optional[str] = ..., reaction_id: _Optional[str] = ..., shard: _Optional[int] = ..., source_run_id: _Optional[str] = ..., source_global_seq: _Optional[int] = ..., subject: _Optional[str] = ..., payload_json: _Optional[str] = ..., status: _Optional[_Union[TaskStatus, str]] = ..., attempts: _Optional[int] = ..., next_attempt_at_ms: _Optional[int] = ..., lease_owner: _Optional[str] = ..., lease_expires_at_ms: _Optional[int] = ..., last_error: _Optional[str] = ..., created_at_ms: _Optional[int] = ..., trace_id: _Optional[str] = ..., parent_span_id: _Optional[str] = ..., attempt: _Optional[int] = ..., source_seq: _Optional[int] = ..., kind: _Optional[str] = ..., type: _Optional[str] = ..., schema_version: _Optional[int] = ..., ts_ms: _Optional[int] = ..., prev_value_json: _Optional[str] = ..., coalesced: _Optional[int] = ..., completed_at_ms: _Optional[int] = ...) -> None: ...

class ClaimTasksRequest(_message.Message):
    __slots__ = ("reaction_id", "shard", "owner", "lease_ms", "max", "task_ids", "reaction_ids", "max_bytes")
    REACTION_ID_FIELD_NUMBER: _ClassVar[int]
    SHARD_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    LEASE_MS_FIELD_NUMBER: _ClassVar[int]
    MAX_FIELD_NUMBER: _ClassVar[int]
    TASK_IDS_FIELD_NUMBER: _ClassVar[int]
    REACTION_IDS_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    reaction_id: str
    shard: int
    owner: str
    lease_ms: int
    max: int
    task_ids: _containers.RepeatedScalarFieldContainer[str]
    reaction_ids: _containers.RepeatedScalarFieldContainer[str]
    max_bytes: int
    def __init__(self, reaction_id: _Optional[str] = ..., shard: _Optional[int] = ..., owner: _Optional[str] = ..., lease_ms: _Optional[int] = ..., max: _Optional[int] = ..., task_ids: _Optional[_Iterable[str]] = ..., reaction_ids: _Optional[_Iterable[str]] = ..., max_bytes: _Optional[int] = ...) -> None: ...

class ClaimTasksResponse(_message.Message):
    __slots__ = ("tasks", "more_after_ms")
    TASKS_FIELD_NUMBER: _ClassVar[int]
    MORE_AFTER_MS_FIELD_NUMBER: _ClassVar[int]
    tasks: _containers.RepeatedCompositeFieldContainer[Task]
    more_after_ms: int
    def __init__(self, tasks: _Optional[_Iterable[_Union[Task, _Mapping]]] = ..., more_after_ms: _Optional[int] = ...) -> None: ...

class ExtendTaskRequest(_message.Message):
    __slots__ = ("task_id", "owner", "attempt", "lease_ms")
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    LEASE_MS_FIELD_NUMBER: _ClassVar[int]
    task_id: str
    owner: str
    attempt: int
    lease_ms: int
    def __init__(self, task_id: _Optional[str] = ..., owner: _Optional[str] = ..., attempt: _Optional[int] = ..., lease_ms: _Optional[int] = ...) -> None: ...

class ExtendTaskResponse(_message.Message):
    __slots__ = ("task",)
    TASK_FIELD_NUMBER: _ClassVar[int]
    task: Task
    def __init__(self, task: _Optional[_Union[Task, _Mapping]] = ...) -> None: ...

class CompleteTaskRequest(_message.Message):
    __slots__ = ("task_id", "owner", "attempt")
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    task_id: str
    owner: str
    attempt: int
    def __init__(self, task_id: _Optional[str] = ..., owner: _Optional[str] = ..., attempt: _Optional[int] = ...) -> None: ...

class CompleteTaskResponse(_message.Message):
    __slots__ = ("task",)
    TASK_FIELD_NUMBER: _ClassVar[int]
    task: Task
    def __init__(self, task: _Optional[_Union[Task, _Mapping]] = ...) -> None: ...

class NackTaskRequest(_message.Message):
    __slots__ = ("task_id", "owner", "error", "permanent", "attempt", "retry_after_ms", "release")
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    PERMANENT_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    RETRY_AFTER_MS_FIELD_NUMBER: _ClassVar[int]
    RELEASE_FIELD_NUMBER: _ClassVar[int]
    task_id: str
    owner: str
    error: str
    permanent: bool
    attempt: int
    retry_after_ms: int
    release: bool
    def __init__(self, task_id: _Optional[str] = ..., owner: _Optional[str] = ..., error: _Optional[str] = ..., permanent: _Optional[bool] = ..., attempt: _Optional[int] = ..., retry_after_ms: _Optional[int] = ..., release: _Optional[bool] = ...) -> None: ...

class NackTaskResponse(_message.Message):
    __slots__ = ("task",)
    TASK_FIELD_NUMBER: _ClassVar[int]
    task: Task
    def __init__(self, task: _Optional[_Union[Task, _Mapping]] = ...) -> None: ...

class ListTasksRequest(_message.Message):
    __slots__ = ("reaction_id", "status", "limit", "cursor", "without_payloads")
    REACTION_ID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    WITHOUT_PAYLOADS_FIELD_NUMBER: _ClassVar[int]
    reaction_id: str
    status: TaskStatus
    limit: int
    cursor: str
    without_payloads: bool
    def __init__(self, reaction_id: _Optional[str] = ..., status: _Optional[_Union[TaskStatus, str]] = ..., limit: _Optional[int] = ..., cursor: _Optional[str] = ..., without_payloads: _Optional[bool] = ...) -> None: ...

class ListTasksResponse(_message.Message):
    __slots__ = ("tasks", "next_cursor")
    TASKS_FIELD_NUMBER: _ClassVar[int]
    NEXT_CURSOR_FIELD_NUMBER: _ClassVar[int]
    tasks: _containers.RepeatedCompositeFieldContainer[Task]
    next_cursor: str
    def __init__(self, tasks: _Optional[_Iterable[_Union[Task, _Mapping]]] = ..., next_cursor: _Optional[str] = ...) -> None: ...

class GetTaskRequest(_message.Message):
    __slots__ = ("task_id",)
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    task_id: str
    def __init__(self, task_id: _Optional[str] = ...) -> None: ...

class TaskDetail(_message.Message):
    __slots__ = ("task", "life")
    TASK_FIELD_NUMBER: _ClassVar[int]
    LIFE_FIELD_NUMBER: _ClassVar[int]
    task: Task
    life: _containers.RepeatedCompositeFieldContainer[LifecycleEvent]
    def __init__(self, task: _Optional[_Union[Task, _Mapping]] = ..., life: _Optional[_Iterable[_Union[LifecycleEvent, _Mapping]]] = ...) -> None: ...

class ReplayTasksRequest(_message.Message):
    __slots__ = ("task_ids", "reaction_id", "limit")
    TASK_IDS_FIELD_NUMBER: _ClassVar[int]
    REACTION_ID_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    task_ids: _containers.RepeatedScalarFieldContainer[str]
    reaction_id: str
    limit: int
    def __init__(self, task_ids: _Optional[_Iterable[str]] = ..., reaction_id: _Optional[str] = ..., limit: _Optional[int] = ...) -> None: ...

class ReplayTasksResponse(_message.Message):
    __slots__ = ("task_ids",)
    TASK_IDS_FIELD_NUMBER: _ClassVar[int]
    task_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, task_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class GetCapabilitiesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class KnownMessage(_message.Message):
    __slots__ = ("name", "fields")
    NAME_FIELD_NUMBER: _ClassVar[int]
    FIELDS_FIELD_NUMBER: _ClassVar[int]
    name: str
    fields: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., fields: _Optional[_Iterable[str]] = ...) -> None: ...

class GetCapabilitiesResponse(_message.Message):
    __slots__ = ("version", "procedures", "messages", "head", "epoch")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    PROCEDURES_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    HEAD_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    version: str
    procedures: _containers.RepeatedScalarFieldContainer[str]
    messages: _containers.RepeatedCompositeFieldContainer[KnownMessage]
    head: int
    epoch: int
    def __init__(self, version: _Optional[str] = ..., procedures: _Optional[_Iterable[str]] = ..., messages: _Optional[_Iterable[_Union[KnownMessage, _Mapping]]] = ..., head: _Optional[int] = ..., epoch: _Optional[int] = ...) -> None: ...

class OpenRunRequest(_message.Message):
    __slots__ = ("run_id", "label", "started_at", "app", "user", "session")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    APP_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    label: str
    started_at: str
    app: str
    user: str
    session: str
    def __init__(self, run_id: _Optional[str] = ..., label: _Optional[str] = ..., started_at: _Optional[str] = ..., app: _Optional[str] = ..., user: _Optional[str] = ..., session: _Optional[str] = ...) -> None: ...

class OpenedRun(_message.Message):
    __slots__ = ("run_id", "epoch")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    epoch: int
    def __init__(self, run_id: _Optional[str] = ..., epoch: _Optional[int] = ...) -> None: ...

class CloseRunRequest(_message.Message):
    __slots__ = ("run_id",)
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    def __init__(self, run_id: _Optional[str] = ...) -> None: ...

class CancelRunRequest(_message.Message):
    __slots__ = ("run_id", "reason")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    reason: str
    def __init__(self, run_id: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class ReapRunRequest(_message.Message):
    __slots__ = ("run_id",)
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    def __init__(self, run_id: _Optional[str] = ...) -> None: ...

class ClosedRun(_message.Message):
    __slots__ = ("run_id", "last_seq")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    LAST_SEQ_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    last_seq: int
    def __init__(self, run_id: _Optional[str] = ..., last_seq: _Optional[int] = ...) -> None: ...

class ListRunsRequest(_message.Message):
    __slots__ = ("status", "app", "label", "prefix", "parent", "opened_after", "opened_before", "closed_after", "closed_before", "order", "limit", "cursor")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    APP_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    PREFIX_FIELD_NUMBER: _ClassVar[int]
    PARENT_FIELD_NUMBER: _ClassVar[int]
    OPENED_AFTER_FIELD_NUMBER: _ClassVar[int]
    OPENED_BEFORE_FIELD_NUMBER: _ClassVar[int]
    CLOSED_AFTER_FIELD_NUMBER: _ClassVar[int]
    CLOSED_BEFORE_FIELD_NUMBER: _ClassVar[int]
    ORDER_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    status: RunStatusFilter
    app: str
    label: str
    prefix: str
    parent: str
    opened_after: int
    opened_before: int
    closed_after: int
    closed_before: int
    order: RunOrder
    limit: int
    cursor: str
    def __init__(self, status: _Optional[_Union[RunStatusFilter, str]] = ..., app: _Optional[str] = ..., label: _Optional[str] = ..., prefix: _Optional[str] = ..., parent: _Optional[str] = ..., opened_after: _Optional[int] = ..., opened_before: _Optional[int] = ..., closed_after: _Optional[int] = ..., closed_before: _Optional[int] = ..., order: _Optional[_Union[RunOrder, str]] = ..., limit: _Optional[int] = ..., cursor: _Optional[str] = ...) -> None: ...

class RunListPage(_message.Message):
    __slots__ = ("runs", "next_cursor")
    RUNS_FIELD_NUMBER: _ClassVar[int]
    NEXT_CURSOR_FIELD_NUMBER: _ClassVar[int]
    runs: _containers.RepeatedCompositeFieldContainer[RunRecord]
    next_cursor: str
    def __init__(self, runs: _Optional[_Iterable[_Union[RunRecord, _Mapping]]] = ..., next_cursor: _Optional[str] = ...) -> None: ...

class RunAncestor(_message.Message):
    __slots__ = ("run_id", "through_seq")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    THROUGH_SEQ_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    through_seq: int
    def __init__(self, run_id: _Optional[str] = ..., through_seq: _Optional[int] = ...) -> None: ...

class RunRecord(_message.Message):
    __slots__ = ("run_id", "label", "started_at", "app", "user", "session", "last_seq", "closed_seq", "floor", "opened_seq", "content_type", "lineage", "opened_at_ms", "closed_at_ms", "is_reaped", "silent_ms")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    APP_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    LAST_SEQ_FIELD_NUMBER: _ClassVar[int]
    CLOSED_SEQ_FIELD_NUMBER: _ClassVar[int]
    FLOOR_FIELD_NUMBER: _ClassVar[int]
    OPENED_SEQ_FIELD_NUMBER: _ClassVar[int]
    CONTENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    LINEAGE_FIELD_NUMBER: _ClassVar[int]
    OPENED_AT_MS_FIELD_NUMBER: _ClassVar[int]
    CLOSED_AT_MS_FIELD_NUMBER: _ClassVar[int]
    IS_REAPED_FIELD_NUMBER: _ClassVar[int]
    SILENT_MS_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    label: str
    started_at: str
    app: str
    user: str
    session: str
    last_seq: int
    closed_seq: int
    floor: int
    opened_seq: int
    content_type: str
    lineage: _containers.RepeatedCompositeFieldContainer[RunAncestor]
    opened_at_ms: int
    closed_at_ms: int
    is_reaped: bool
    silent_ms: int
    def __init__(self, run_id: _Optional[str] = ..., label: _Optional[str] = ..., started_at: _Optional[str] = ..., app: _Optional[str] = ..., user: _Optional[str] = ..., session: _Optional[str] = ..., last_seq: _Optional[int] = ..., closed_seq: _Optional[int] = ..., floor: _Optional[int] = ..., opened_seq: _Optional[int] = ..., content_type: _Optional[str] = ..., lineage: _Optional[_Iterable[_Union[RunAncestor, _Mapping]]] = ..., opened_at_ms: _Optional[int] = ..., closed_at_ms: _Optional[int] = ..., is_reaped: _Optional[bool] = ..., silent_ms: _Optional[int] = ...) -> None: ...

class ShowRunRequest(_message.Message):
    __slots__ = ("run_id",)
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    def __init__(self, run_id: _Optional[str] = ...) -> None: ...

class RunDetail(_message.Message):
    __slots__ = ("record", "epoch", "ledger", "obligations")
    RECORD_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    LEDGER_FIELD_NUMBER: _ClassVar[int]
    OBLIGATIONS_FIELD_NUMBER: _ClassVar[int]
    record: RunRecord
    epoch: int
    ledger: RunState
    obligations: _containers.RepeatedCompositeFieldContainer[ObligationRecord]
    def __init__(self, record: _Optional[_Union[RunRecord, _Mapping]] = ..., epoch: _Optional[int] = ..., ledger: _Optional[_Union[RunState, _Mapping]] = ..., obligations: _Optional[_Iterable[_Union[ObligationRecord, _Mapping]]] = ...) -> None: ...

class ForkRunRequest(_message.Message):
    __slots__ = ("run_id", "at_seq", "mutation_json", "n_turns", "producer", "effects", "reason")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    AT_SEQ_FIELD_NUMBER: _ClassVar[int]
    MUTATION_JSON_FIELD_NUMBER: _ClassVar[int]
    N_TURNS_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_FIELD_NUMBER: _ClassVar[int]
    EFFECTS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    at_seq: int
    mutation_json: str
    n_turns: int
    producer: str
    effects: EffectPolicy
    reason: str
    def __init__(self, run_id: _Optional[str] = ..., at_seq: _Optional[int] = ..., mutation_json: _Optional[str] = ..., n_turns: _Optional[int] = ..., producer: _Optional[str] = ..., effects: _Optional[_Union[EffectPolicy, str]] = ..., reason: _Optional[str] = ...) -> None: ...

class ForkedRun(_message.Message):
    __slots__ = ("child_run_id", "parent_run_id", "at_seq")
    CHILD_RUN_ID_FIELD_NUMBER: _ClassVar[int]
    PARENT_RUN_ID_FIELD_NUMBER: _ClassVar[int]
    AT_SEQ_FIELD_NUMBER: _ClassVar[int]
    child_run_id: str
    parent_run_id: str
    at_seq: int
    def __init__(self, child_run_id: _Optional[str] = ..., parent_run_id: _Optional[str] = ..., at_seq: _Optional[int] = ...) -> None: ...

class DiffRunsRequest(_message.Message):
    __slots__ = ("run_id", "other", "limit")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    OTHER_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    other: str
    limit: int
    def __init__(self, run_id: _Optional[str] = ..., other: _Optional[str] = ..., limit: _Optional[int] = ...) -> None: ...

class RunDiff(_message.Message):
    __slots__ = ("one", "other", "shared", "places", "differing", "entries", "ledgers")
    ONE_FIELD_NUMBER: _ClassVar[int]
    OTHER_FIELD_NUMBER: _ClassVar[int]
    SHARED_FIELD_NUMBER: _ClassVar[int]
    PLACES_FIELD_NUMBER: _ClassVar[int]
    DIFFERING_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    LEDGERS_FIELD_NUMBER: _ClassVar[int]
    one: str
    other: str
    shared: int
    places: int
    differing: int
    entries: _containers.RepeatedCompositeFieldContainer[DiffedEntries]
    ledgers: _containers.RepeatedCompositeFieldContainer[DiffedLedger]
    def __init__(self, one: _Optional[str] = ..., other: _Optional[str] = ..., shared: _Optional[int] = ..., places: _Optional[int] = ..., differing: _Optional[int] = ..., entries: _Optional[_Iterable[_Union[DiffedEntries, _Mapping]]] = ..., ledgers: _Optional[_Iterable[_Union[DiffedLedger, _Mapping]]] = ...) -> None: ...

class DiffedEntries(_message.Message):
    __slots__ = ("one", "other")
    ONE_FIELD_NUMBER: _ClassVar[int]
    OTHER_FIELD_NUMBER: _ClassVar[int]
    one: EventEntry
    other: EventEntry
    def __init__(self, one: _Optional[_Union[EventEntry, _Mapping]] = ..., other: _Optional[_Union[EventEntry, _Mapping]] = ...) -> None: ...

class DiffedLedger(_message.Message):
    __slots__ = ("what", "place", "name", "one", "other")
    WHAT_FIELD_NUMBER: _ClassVar[int]
    PLACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ONE_FIELD_NUMBER: _ClassVar[int]
    OTHER_FIELD_NUMBER: _ClassVar[int]
    what: str
    place: str
    name: str
    one: DiffedSide
    other: DiffedSide
    def __init__(self, what: _Optional[str] = ..., place: _Optional[str] = ..., name: _Optional[str] = ..., one: _Optional[_Union[DiffedSide, _Mapping]] = ..., other: _Optional[_Union[DiffedSide, _Mapping]] = ...) -> None: ...

class DiffedSide(_message.Message):
    __slots__ = ("status", "request_json", "response_json")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_JSON_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_JSON_FIELD_NUMBER: _ClassVar[int]
    status: str
    request_json: str
    response_json: str
    def __init__(self, status: _Optional[str] = ..., request_json: _Optional[str] = ..., response_json: _Optional[str] = ...) -> None: ...

class ListEventsRequest(_message.Message):
    __slots__ = ("run_id", "after", "limit", "wait_ms", "epoch")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    WAIT_MS_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    after: int
    limit: int
    wait_ms: int
    epoch: int
    def __init__(self, run_id: _Optional[str] = ..., after: _Optional[int] = ..., limit: _Optional[int] = ..., wait_ms: _Optional[int] = ..., epoch: _Optional[int] = ...) -> None: ...

class EventPage(_message.Message):
    __slots__ = ("entries", "next", "head", "closed", "epoch")
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    HEAD_FIELD_NUMBER: _ClassVar[int]
    CLOSED_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedCompositeFieldContainer[EventEntry]
    next: int
    head: int
    closed: bool
    epoch: int
    def __init__(self, entries: _Optional[_Iterable[_Union[EventEntry, _Mapping]]] = ..., next: _Optional[int] = ..., head: _Optional[int] = ..., closed: _Optional[bool] = ..., epoch: _Optional[int] = ...) -> None: ...

class ListOutboxRequest(_message.Message):
    __slots__ = ("status", "event_type", "generation", "limit", "cursor")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    EVENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    status: OutboxStatus
    event_type: str
    generation: int
    limit: int
    cursor: str
    def __init__(self, status: _Optional[_Union[OutboxStatus, str]] = ..., event_type: _Optional[str] = ..., generation: _Optional[int] = ..., limit: _Optional[int] = ..., cursor: _Optional[str] = ...) -> None: ...

class ListOutboxResponse(_message.Message):
    __slots__ = ("rows", "next_cursor")
    ROWS_FIELD_NUMBER: _ClassVar[int]
    NEXT_CURSOR_FIELD_NUMBER: _ClassVar[int]
    rows: _containers.RepeatedCompositeFieldContainer[OutboxRow]
    next_cursor: str
    def __init__(self, rows: _Optional[_Iterable[_Union[OutboxRow, _Mapping]]] = ..., next_cursor: _Optional[str] = ...) -> None: ...

class OutboxRow(_message.Message):
    __slots__ = ("event_id", "event_type", "event_version", "occurred_at", "source", "target", "workspace_id", "payload_json", "idempotency_key", "trace_context", "content_class", "order_key", "generation", "channel", "status", "attempts", "last_error", "failure_history_json", "first_failed_at_ms", "deleted_at_ms", "position")
    EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    EVENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    EVENT_VERSION_FIELD_NUMBER: _ClassVar[int]
    OCCURRED_AT_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_ID_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_JSON_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    TRACE_CONTEXT_FIELD_NUMBER: _ClassVar[int]
    CONTENT_CLASS_FIELD_NUMBER: _ClassVar[int]
    ORDER_KEY_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    LAST_ERROR_FIELD_NUMBER: _ClassVar[int]
    FAILURE_HISTORY_JSON_FIELD_NUMBER: _ClassVar[int]
    FIRST_FAILED_AT_MS_FIELD_NUMBER: _ClassVar[int]
    DELETED_AT_MS_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    event_id: str
    event_type: str
    event_version: int
    occurred_at: str
    source: str
    target: str
    workspace_id: str
    payload_json: str
    idempotency_key: str
    trace_context: str
    content_class: str
    order_key: str
    generation: int
    channel: str
    status: OutboxStatus
    attempts: int
    last_error: str
    failure_history_json: _containers.RepeatedScalarFieldContainer[str]
    first_failed_at_ms: int
    deleted_at_ms: int
    position: int
    def __init__(self, event_id: _Optional[str] = ..., event_type: _Optional[str] = ..., event_version: _Optional[int] = ..., occurred_at: _Optional[str] = ..., source: _Optional[str] = ..., target: _Optional[str] = ..., workspace_id: _Optional[str] = ..., payload_json: _Optional[str] = ..., idempotency_key: _Optional[str] = ..., trace_context: _Optional[str] = ..., content_class: _Optional[str] = ..., order_key: _Optional[str] = ..., generation: _Optional[int] = ..., channel: _Optional[str] = ..., status: _Optional[_Union[OutboxStatus, str]] = ..., attempts: _Optional[int] = ..., last_error: _Optional[str] = ..., failure_history_json: _Optional[_Iterable[str]] = ..., first_failed_at_ms: _Optional[int] = ..., deleted_at_ms: _Optional[int] = ..., position: _Optional[int] = ...) -> None: ...

class GetOutboxEventRequest(_message.Message):
    __slots__ = ("event_id",)
    EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    event_id: str
    def __init__(self, event_id: _Optional[str] = ...) -> None: ...

class OutboxDetail(_message.Message):
    __slots__ = ("row", "deliveries")
    ROW_FIELD_NUMBER: _ClassVar[int]
    DELIVERIES_FIELD_NUMBER: _ClassVar[int]
    row: OutboxRow
    deliveries: _containers.RepeatedCompositeFieldContainer[OutboxDelivery]
    def __init__(self, row: _Optional[_Union[OutboxRow, _Mapping]] = ..., deliveries: _Optional[_Iterable[_Union[OutboxDelivery, _Mapping]]] = ...) -> None: ...

class OutboxDelivery(_message.Message):
    __slots__ = ("handler_name", "status", "attempts", "last_error", "lease_owner")
    HANDLER_NAME_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    LAST_ERROR_FIELD_NUMBER: _ClassVar[int]
    LEASE_OWNER_FIELD_NUMBER: _ClassVar[int]
    handler_name: str
    status: OutboxStatus
    attempts: int
    last_error: str
    lease_owner: str
    def __init__(self, handler_name: _Optional[str] = ..., status: _Optional[_Union[OutboxStatus, str]] = ..., attempts: _Optional[int] = ..., last_error: _Optional[str] = ..., lease_owner: _Optional[str] = ...) -> None: ...

class GetOutboxStatsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class OutboxStats(_message.Message):
    __slots__ = ("pending", "in_flight", "failed", "oldest_ms", "rows", "ack_p50_ms", "ack_p99_ms", "notify_queue_usage", "advice")
    PENDING_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    OLDEST_MS_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    ACK_P50_MS_FIELD_NUMBER: _ClassVar[int]
    ACK_P99_MS_FIELD_NUMBER: _ClassVar[int]
    NOTIFY_QUEUE_USAGE_FIELD_NUMBER: _ClassVar[int]
    ADVICE_FIELD_NUMBER: _ClassVar[int]
    pending: int
    in_flight: int
    failed: int
    oldest_ms: int
    rows: int
    ack_p50_ms: float
    ack_p99_ms: float
    notify_queue_usage: float
    advice: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, pending: _Optional[int] = ..., in_flight: _Optional[int] = ..., failed: _Optional[int] = ..., oldest_ms: _Optional[int] = ..., rows: _Optional[int] = ..., ack_p50_ms: _Optional[float] = ..., ack_p99_ms: _Optional[float] = ..., notify_queue_usage: _Optional[float] = ..., advice: _Optional[_Iterable[str]] = ...) -> None: ...

class ReplayOutboxRequest(_message.Message):
    __slots__ = ("event_ids", "event_type", "handler_name", "from_generation", "generation", "replayed_by")
    EVENT_IDS_FIELD_NUMBER: _ClassVar[int]
    EVENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    HANDLER_NAME_FIELD_NUMBER: _ClassVar[int]
    FROM_GENERATION_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    REPLAYED_BY_FIELD_NUMBER: _ClassVar[int]
    event_ids: _containers.RepeatedScalarFieldContainer[str]
    event_type: str
    handler_name: str
    from_generation: int
    generation: int
    replayed_by: str
    def __init__(self, event_ids: _Optional[_Iterable[str]] = ..., event_type: _Optional[str] = ..., handler_name: _Optional[str] = ..., from_generation: _Optional[int] = ..., generation: _Optional[int] = ..., replayed_by: _Optional[str] = ...) -> None: ...

class ReplayOutboxResponse(_message.Message):
    __slots__ = ("replayed",)
    REPLAYED_FIELD_NUMBER: _ClassVar[int]
    replayed: int
    def __init__(self, replayed: _Optional[int] = ...) -> None: ...

class HandOverOutboxRequest(_message.Message):
    __slots__ = ("retired", "generation")
    RETIRED_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    retired: int
    generation: int
    def __init__(self, retired: _Optional[int] = ..., generation: _Optional[int] = ...) -> None: ...

class HandOverOutboxResponse(_message.Message):
    __slots__ = ("handed_over",)
    HANDED_OVER_FIELD_NUMBER: _ClassVar[int]
    handed_over: int
    def __init__(self, handed_over: _Optional[int] = ...) -> None: ...

class RetainOutboxRequest(_message.Message):
    __slots__ = ("active_ms", "grace_ms", "handled_active_ms", "handled_grace_ms")
    ACTIVE_MS_FIELD_NUMBER: _ClassVar[int]
    GRACE_MS_FIELD_NUMBER: _ClassVar[int]
    HANDLED_ACTIVE_MS_FIELD_NUMBER: _ClassVar[int]
    HANDLED_GRACE_MS_FIELD_NUMBER: _ClassVar[int]
    active_ms: int
    grace_ms: int
    handled_active_ms: int
    handled_grace_ms: int
    def __init__(self, active_ms: _Optional[int] = ..., grace_ms: _Optional[int] = ..., handled_active_ms: _Optional[int] = ..., handled_grace_ms: _Optional[int] = ...) -> None: ...

class RetainOutboxResponse(_message.Message):
    __slots__ = ("marked", "deleted", "forgotten")
    MARKED_FIELD_NUMBER: _ClassVar[int]
    DELETED_FIELD_NUMBER: _ClassVar[int]
    FORGOTTEN_FIELD_NUMBER: _ClassVar[int]
    marked: int
    deleted: int
    forgotten: int
    def __init__(self, marked: _Optional[int] = ..., deleted: _Optional[int] = ..., forgotten: _Optional[int] = ...) -> None: ...

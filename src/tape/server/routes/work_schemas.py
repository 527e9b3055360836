"""The schemas of `/reactions` and `/tasks`."""

from dataclasses import asdict
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from tape.core.matched import ReactionRecord
from tape.core.reaction import BOUNDS, TIMEOUT_MS
from tape.core.task import Task
from tape.operations.rules import PRINTABLE, Name
from tape.server.routes.parameters import Limit
from tape.server.routes.schemas import Cel, Count, Id, PositiveInt, SubjectPattern

Status = Literal["pending", "claimed", "done", "dlq"]
Payload = Literal["whole", "none"]
PauseReason = Annotated[str, Meta(min_length=1, max_length=256, extra_json_schema=PRINTABLE)]
TaskName = Annotated[str, Meta(min_length=1, max_length=256)]


def _within(option: str) -> Meta:
    least, most = BOUNDS[option]
    return Meta(ge=least, le=most)


class ReactionDefinition(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A reaction to register; the id is in the path. The default `handler_kind` is a local function."""

    subject_pattern: SubjectPattern = ""
    name: Name = ""
    predicate_cel: Cel = ""
    handler_kind: Annotated[int, Meta(ge=1, le=3)] = 2
    agent_app: str = ""
    publish_target: str = ""
    max_concurrency: Annotated[int, _within("max_concurrency")] = 1
    rate_limit_per_s: Annotated[int, _within("rate_limit_per_s")] = 0
    debounce_ms: Annotated[int, _within("debounce_ms")] = 0
    retry_max: Annotated[int, _within("retry_max")] = 5
    retry_backoff_ms: Annotated[int, _within("retry_backoff_ms")] = 1000
    dlq_after_n: Annotated[int, _within("dlq_after_n")] = 5
    num_shards: Annotated[int, _within("num_shards")] = 1
    bootstrap_from_head: bool = False
    timeout_ms: Annotated[int, _within("timeout_ms")] = TIMEOUT_MS


class NewReaction(ReactionDefinition, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A reaction to register, with its id."""

    reaction_id: Id


class ReactionDetail(Struct, frozen=True, kw_only=True):
    """A reaction as last registered, and its cursor: `lag` entries are still to be matched."""

    reaction_id: Id
    subject_pattern: str
    name: str
    predicate_cel: str
    handler_kind: int
    agent_app: str
    publish_target: str
    max_concurrency: int
    rate_limit_per_s: int
    debounce_ms: int
    retry_max: int
    retry_backoff_ms: int
    dlq_after_n: int
    num_shards: int
    bootstrap_from_head: bool
    timeout_ms: int
    created_at_ms: int
    deleted: bool
    paused: str
    last_global_seq: Count
    lag: Count
    errors: Count
    last_error: str

    @classmethod
    def of(cls, record: ReactionRecord, head: int) -> "ReactionDetail":
        definition: Any = record.reaction.definition()
        return cls(
            **definition,
            created_at_ms=record.created_at_ms,
            deleted=record.is_removed,
            paused=record.paused,
            last_global_seq=record.cursor,
            lag=max(0, head - record.cursor),
            errors=record.errors,
            last_error=record.last_error,
        )


class Reactions(Struct, frozen=True, kw_only=True):
    """Reactions in the order of their ids; with a `next_cursor` there are more."""

    reactions: list[ReactionDetail]
    next_cursor: str = ""


class Pause(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The reason, which is stored in the journal's entry."""

    reason: PauseReason = "paused"


class Deregistered(Struct, frozen=True, kw_only=True):
    """A removed reaction."""

    reaction_id: Id
    deregistered: bool = True


class LifecycleEvent(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An entry of the journal about a reaction or a task."""

    global_seq: PositiveInt
    ts_ms: int
    type: str
    attempts: int | UnsetType = UNSET
    error: str | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    paused: str | UnsetType = UNSET


class TaskRow(Struct, frozen=True, kw_only=True):
    """A task's row: `attempt` is the fencing number, `attempts` counts since the last replay."""

    task_id: str
    reaction_id: Id
    shard: int
    source_run_id: str
    source_seq: int
    source_global_seq: Count
    kind: str
    type: str
    subject: str
    schema_version: int
    ts_ms: int
    payload_json: str
    prev_value_json: str
    status: Annotated[int, Meta(ge=1, le=5)]
    attempt: Count
    attempts: Count
    next_attempt_at_ms: int
    lease_owner: str
    lease_expires_at_ms: int
    last_error: str
    coalesced: Count
    created_at_ms: int
    completed_at_ms: int
    trace_id: str
    span_id: str

    @classmethod
    def of(cls, row: Task) -> "TaskRow":
        return cls(**{**asdict(row), "status": int(row.status)})


class Tasks(Struct, frozen=True, kw_only=True):
    """Newest first, as many as fit into one response; with a `next_cursor` there may be older ones."""

    tasks: list[TaskRow]
    next_cursor: str = ""


class TaskDetail(Struct, frozen=True, kw_only=True):
    """A task, and the entries about its deaths and replays."""

    task: TaskRow
    life: list[LifecycleEvent]


class Replay(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The dead tasks to replay: the named ones, else those of a reaction, else all, up to `limit`."""

    task_ids: Annotated[list[TaskName], Meta(max_length=1000)] = []
    reaction_id: Id | None = None
    limit: Limit = 1000


class Replayed(Struct, frozen=True, kw_only=True):
    """The tasks that are pending again."""

    replayed: list[str]


class PatternFact(Struct, frozen=True, kw_only=True):
    text: str
    matched: bool


class PartFact(Struct, frozen=True, kw_only=True):
    """A part of a predicate: its position in the text, and its value or error."""

    position: str
    text: str
    value: str | None
    error: str | None


class PredicateFact(Struct, frozen=True, kw_only=True):
    text: str
    matched: bool
    error: str | None
    parts: list[PartFact]


class Explained(Struct, frozen=True, kw_only=True):
    """Why an entry became a task of a reaction, or why not."""

    reaction_id: Id
    global_seq: PositiveInt
    subject: str
    outcome: Literal[
        "not_active", "other_subject", "no_match", "predicate_error", "too_deep", "not_yet", "task", "coalesced",
        "backfilled", "forgotten",
    ]  # fmt: skip
    matched: bool
    active: bool
    reason: str
    definition: dict[str, Any]
    pattern: PatternFact
    predicate: PredicateFact
    depth: Count
    max_depth: Count
    debounce_ms: Count
    last_global_seq: Count
    registrations: list[LifecycleEvent]
    task: TaskRow | None
    life: list[LifecycleEvent]

"""What requests and answers are made of; the same shapes check, answer and document."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from tape.core.codec import JsonValue
from tape.core.errors import UsageError, quoted
from tape.core.ids import ID_GRAMMAR
from tape.core.producer import MOST_TURNS, TURNS
from tape.core.run import MAX_LENGTH, RunRecord

Id = Annotated[str, Meta(pattern=f"^{ID_GRAMMAR}$", description="1 to 128 of A-Z a-z 0-9 . _ -")]
Text = Annotated[str, Meta(max_length=MAX_LENGTH, description="printable text")]
Place = Annotated[int, Meta(ge=1, le=(1 << 63) - 1)]
Count = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
State = Literal["running", "stale", "complete"]
Effects = Literal["replay", "stub", "live"]


class NewRun(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A run to open; without an id it gets one."""

    run_id: Id | None = None
    label: Text | None = None
    started_at: Text | None = None
    app: Text | None = None
    user: Text | None = None
    session: Text | None = None


class OpenedRun(Struct, frozen=True, kw_only=True):
    """A run that is open now, and which journal it is in."""

    run_id: Id
    epoch: Count


class Run(Struct, frozen=True, kw_only=True):
    """A run as lists show it."""

    run_id: Id
    label: str | None
    started_at: str | None
    n_events: Count
    status: State

    @classmethod
    def of(cls, record: RunRecord) -> "Run":
        return cls(**_listed(record))


class Runs(Struct, frozen=True, kw_only=True):
    """Open runs first, each run once."""

    runs: list[Run]


class UnmetObligation(Struct, frozen=True, kw_only=True):
    """What a run still has to undo: it waits for a worker of the app whose program has registered the compensator."""

    number: Count
    kind: str
    app: str
    compensator: str
    status: str
    attempts: Count
    last_error: str


class LedgerRun(Struct, frozen=True, kw_only=True):
    """A run as its ledger knows it: whose it is, how its work is doing, who does it."""

    app: str
    user: str
    session: str
    invocation: str
    work: str
    owner: str
    attempt: Count
    waiting_on_gate: str
    detail_json: str
    labels: dict[str, str]
    obligations: list[UnmetObligation]


class RunDetail(Struct, frozen=True, kw_only=True):
    """Everything that is known of a run; `floor` is the first seq that is still there."""

    run_id: Id
    label: str | None
    started_at: str | None
    n_events: Count
    status: State
    app: str | None
    user: str | None
    session: str | None
    last_seq: Count
    floor: Place
    closed_seq: Count | None
    opened_at_ms: int
    closed_at_ms: int | None
    is_reaped: bool
    epoch: Count
    ledger: LedgerRun | None

    @classmethod
    def of_record(cls, record: RunRecord, epoch: int, ledger: LedgerRun | None = None) -> "RunDetail":
        meta, head = record.meta, record.head
        return cls(
            **_listed(record),
            app=meta.app,
            user=meta.user,
            session=meta.session,
            last_seq=head.last_seq,
            floor=head.floor,
            closed_seq=head.closed_seq,
            opened_at_ms=record.opened_at_ms,
            closed_at_ms=record.closed_at_ms,
            is_reaped=record.is_reaped,
            epoch=epoch,
            ledger=ledger,
        )


class ClosedRun(Struct, frozen=True, kw_only=True):
    """A run that has ended, and where."""

    run_id: Id
    status: State
    last_seq: Count


class NewFork(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A child to begin: its parent's entries 1 to `at_seq`, then its own; without a producer nobody goes on in it."""

    parent_run_id: Id
    at_seq: Count
    mutation: Any = None
    n_turns: Annotated[int, Meta(ge=0, le=MOST_TURNS)] = TURNS
    producer: Id | None = None
    effects: Annotated[Effects | None, Meta(description="what becomes of effects in the child")] = None
    reason: Text | None = None


class ForkedRun(Struct, frozen=True, kw_only=True):
    """A child that can be streamed from now on."""

    child_run_id: Id
    parent_run_id: Id
    at_seq: Count


class NewEvent(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a producer says; without a subject it is about its type and run."""

    payload: Any
    type: Id = "message"
    subject: Annotated[str, Meta(min_length=1, max_length=1024)] | None = None
    schema_version: Annotated[int, Meta(ge=1, le=32767)] = 1


class Position(Struct, frozen=True):
    """Where an event stands: in its run, and in the journal."""

    seq: Place
    global_seq: Place


class Appended(Struct, frozen=True, kw_only=True):
    """The events are in, in this order."""

    entries: list[Position]


class Health(Struct, frozen=True, kw_only=True):
    """The process is there and answers."""

    status: Literal["ok"] = "ok"


class Readiness(Struct, frozen=True, kw_only=True):
    """The server can do its work."""

    status: Literal["ready"] = "ready"
    head: Count


class Capabilities(Struct, frozen=True, kw_only=True):
    """What this server can do, by name, and within which bounds."""

    features: dict[str, bool]
    limits: dict[str, int]
    epoch: Count
    version: str


class BrokerCounters(Struct, frozen=True, kw_only=True):
    """What this server has done since it started, and how many runs are open."""

    events_published: Count
    events_streamed: Count
    streams_dropped: Count
    runs_open: Count


class ProblemDetails(Struct, frozen=True, kw_only=True):
    """What is wrong, by RFC 9457; `code` tells programs, `detail` tells people."""

    type: str
    title: str
    status: Annotated[int, Meta(ge=400, le=599)]
    code: Annotated[str, Meta(pattern="^[a-z_]+$")]
    detail: str
    trace_id: Annotated[str, Meta(pattern="^[0-9a-f]{32}$")]
    retry_after_ms: Count | UnsetType = UNSET
    outcome: Literal["unknown", "nothing"] | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    run_id: str | UnsetType = UNSET
    limit: Count | UnsetType = UNSET


def shaped(value: JsonValue, shape: Any) -> Any:
    """A body's value in its shape, or what is wrong with it."""
    try:
        return msgspec.convert(value, shape)
    except msgspec.ValidationError as error:
        raise UsageError(f"the body has another shape: {quoted(str(error))[1:-1]}") from None


def _listed(record: RunRecord) -> dict[str, Any]:
    return {
        "run_id": record.run_id,
        "label": record.meta.label,
        "started_at": record.meta.started_at,
        "n_events": record.head.last_seq,
        "status": record.status.value,
    }

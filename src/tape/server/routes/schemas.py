"""The schemas of requests and responses; they validate, encode and document."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from tape.core.codec import JsonValue
from tape.core.event import MAX_VERSION
from tape.core.ids import ID_GRAMMAR
from tape.core.producer import MAX_TURNS, TURNS
from tape.core.run import MAX_LENGTH, RunActivity, RunRecord
from tape.operations.rules import PRINTABLE
from tape.wire.frames import Delivered
from tape.wire.strict_json import convert

Id = Annotated[str, Meta(pattern=f"^{ID_GRAMMAR}$", description="1 to 128 of A-Z a-z 0-9 . _ -")]
Text = Annotated[str, Meta(max_length=MAX_LENGTH, description="printable text", extra_json_schema=PRINTABLE)]
Subject = Annotated[str, Meta(min_length=1, max_length=1024, extra_json_schema={"format": "subject"})]
SubjectPattern = Annotated[str, Meta(max_length=1024, extra_json_schema={"format": "subject-pattern"})]
Cel = Annotated[str, Meta(description="a CEL expression", extra_json_schema={"format": "cel"})]
Version = Annotated[int, Meta(ge=1, le=MAX_VERSION)]
PositiveInt = Annotated[int, Meta(ge=1, le=(1 << 63) - 1)]
Count = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
Effects = Literal["replay", "stub", "live"]


class NewRun(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A run to open; without an id the server makes one."""

    run_id: Id | None = None
    label: Text | None = None
    started_at: Text | None = None
    app: Text | None = None
    user: Text | None = None
    session: Text | None = None


class OpenedRun(Struct, frozen=True, kw_only=True):
    """A run that is open, and the epoch of its journal."""

    run_id: Id
    epoch: Count


class Run(Struct, frozen=True, kw_only=True):
    """A run in a list."""

    run_id: Id
    label: str | None
    started_at: str | None
    n_events: Count
    status: RunActivity

    @classmethod
    def of(cls, record: RunRecord) -> "Run":
        return cls(**_listed(record))


class Runs(Struct, frozen=True, kw_only=True):
    """A page of runs; with a `next_cursor` there are more."""

    runs: list[Run]
    next_cursor: str = ""


class UnmetObligation(Struct, frozen=True, kw_only=True):
    """An obligation that is not met; it waits for a worker of `app` that has registered the compensator."""

    number: Count
    kind: str
    app: str
    compensator: str
    status: str
    attempts: Count
    last_error: str


class LedgerRun(Struct, frozen=True, kw_only=True):
    """The ledger of a run: its app, user and session, its state, its worker and its obligations."""

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
    """A run in full; `floor` is its first retained seq."""

    run_id: Id
    label: str | None
    started_at: str | None
    n_events: Count
    status: RunActivity
    app: str | None
    user: str | None
    session: str | None
    last_seq: Count
    floor: PositiveInt
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


class Cancellation(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why a run is cancelled; its last entry says it."""

    reason: Text | None = None


class ClosedRun(Struct, frozen=True, kw_only=True):
    """A closed run and its last seq."""

    run_id: Id
    status: RunActivity
    last_seq: Count


class NewFork(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A fork: the parent's entries 1 to `at_seq`, then its own; without a producer it is not continued."""

    parent_run_id: Id
    at_seq: Count
    mutation: Any = None
    n_turns: Annotated[int, Meta(ge=0, le=MAX_TURNS)] = TURNS
    producer: Id | None = None
    effects: Annotated[Effects | None, Meta(description="how the child treats effects")] = None
    reason: Text | None = None


class ForkedRun(Struct, frozen=True, kw_only=True):
    """A child run; it can be streamed at once."""

    child_run_id: Id
    parent_run_id: Id
    at_seq: Count


class NewEvent(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An event to append; the default subject is made of its type and run."""

    payload: Any
    type: Id = "message"
    subject: Subject | None = None
    schema_version: Version = 1


NewEvents = NewEvent | Annotated[list[NewEvent], Meta(min_length=1)]


class Position(Struct, frozen=True):
    """The position of an entry in its run and in the journal."""

    seq: PositiveInt
    global_seq: PositiveInt


class Appended(Struct, frozen=True, kw_only=True):
    """The positions of the appended events, in their order."""

    entries: list[Position]


class Events(Struct, frozen=True, kw_only=True):
    """Entries of a run, as its stream sends them; the next page is the one after `next`.

    A closed run was read to its end when `next` is its `head`.
    """

    entries: list[Delivered]
    next: Count
    head: Count
    closed: bool


class Health(Struct, frozen=True, kw_only=True):
    """The process answers."""

    status: Literal["ok"] = "ok"


class Readiness(Struct, frozen=True, kw_only=True):
    """The server is ready."""

    status: Literal["ready"] = "ready"
    head: Count


class Capabilities(Struct, frozen=True, kw_only=True):
    """The features and limits of the server, and its operations with the fields of their requests."""

    features: dict[str, bool]
    limits: dict[str, int]
    epoch: Count
    version: str
    operations: dict[str, list[str]]


class BrokerCounters(Struct, frozen=True, kw_only=True):
    """Counters since the server started, and the number of open runs."""

    events_published: Count
    events_streamed: Count
    streams_dropped: Count
    runs_open: Count


class ProblemDetails(Struct, frozen=True, kw_only=True):
    """A problem by RFC 9457; `code` is for programs, `detail` for people."""

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


def parse_body(value: JsonValue, schema: Any) -> Any:
    """The body converted to its schema; a UsageError names the field that does not fit."""
    return convert(value, schema)


def _listed(record: RunRecord) -> dict[str, Any]:
    return {
        "run_id": record.run_id,
        "label": record.meta.label,
        "started_at": record.meta.started_at,
        "n_events": record.head.last_seq,
        "status": record.status,
    }

"""The schemas of requests and responses; they validate, encode and document."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from tape.core.codec import JsonValue
from tape.core.event import MAX_VERSION
from tape.operations.rules import Cel as Cel, Id as Id, SubjectPattern as SubjectPattern
from tape.wire.frames import Delivered
from tape.wire.strict_json import convert

Subject = Annotated[str, Meta(min_length=1, max_length=1024, extra_json_schema={"format": "subject"})]
Version = Annotated[int, Meta(ge=1, le=MAX_VERSION)]
PositiveInt = Annotated[int, Meta(ge=1, le=(1 << 63) - 1)]
Count = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]


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
    """The positions of the appended events, in their order, and the epoch of the journal that they are in."""

    entries: list[Position]
    epoch: Count


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
    """The features and limits of the server, and its operations with the fields of their requests.

    `head` is the last position of the journal; absent if the store does not answer.
    """

    features: dict[str, bool]
    limits: dict[str, int]
    epoch: Count
    head: Count | UnsetType = UNSET
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

"""What requests and answers about ledgers are made of."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from tape.core.text import MAX_NAME
from tape.server.routes.shapes import Count, Id, Place

Name = Annotated[str, Meta(min_length=1, max_length=MAX_NAME, description="printable text")]
Version = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]


class NewValue(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A value to know from now on."""

    value: Any
    writer: Annotated[str, Meta(max_length=MAX_NAME)] = ""


class KnownValue(Struct, frozen=True, kw_only=True):
    """One version of a value; a deleted one is its tombstone."""

    namespace: str
    key: str
    version: Version
    value: Any
    writer: str
    ts_ms: int
    deleted: bool


class KnownValues(Struct, frozen=True, kw_only=True):
    """The values of a namespace, by key."""

    values: list[KnownValue]


class ValueVersion(Struct, frozen=True, kw_only=True):
    """A version, and which one was before it."""

    namespace: str
    key: str
    version: Version
    value: Any
    writer: str
    ts_ms: int
    deleted: bool
    prev_version: Version | None


class ValueVersions(Struct, frozen=True, kw_only=True):
    """The newest versions, the oldest of them first."""

    versions: list[ValueVersion]


class NewSignal(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is said to a run that waits at a gate, or will."""

    resolution: Any = None


class SentSignal(Struct, frozen=True, kw_only=True):
    """Whether the run takes it, and how the run stands if it may go on because of it."""

    accepted: bool
    run_id: Id
    run_status: str | None


class DiffedEntry(Struct, frozen=True, kw_only=True):
    """An entry of one of two runs."""

    seq: Place
    global_seq: Place
    kind: str
    type: str
    payload: Any


class DiffedRow(Struct, frozen=True, kw_only=True):
    """What both runs say at a place where they differ."""

    one: DiffedEntry | None
    other: DiffedEntry | None


class DiffedSide(Struct, frozen=True):
    """How a decision or an effect of one run stands, what was asked, and what came of it."""

    status: str
    request_json: str
    response_json: str


class DiffedLedger(Struct, frozen=True, kw_only=True):
    """A decision or an effect of each run at the same place."""

    what: Literal["decision", "effect"]
    place: str
    name: str
    is_same: bool
    one: DiffedSide | None
    other: DiffedSide | None


class RunDiff(Struct, frozen=True, kw_only=True):
    """Two runs: they share entries 1 to `shared`; of so many places after that so many differ."""

    one: Id
    other: Id
    shared: Count
    places: Count
    differing: Count
    entries: list[DiffedRow]
    ledgers: list[DiffedLedger]

"""The schemas of values, signals and diffs."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from tape.operations.rules import Name as OptionalName
from tape.server.routes.schemas import Count, Id, PositiveInt

Version = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]


class NewValue(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A value to write."""

    value: Any
    writer: OptionalName = ""


class KnownValue(Struct, frozen=True, kw_only=True):
    """One version of a value; `deleted` marks a tombstone."""

    namespace: str
    key: str
    version: Version
    value: Any
    writer: str
    ts_ms: int
    deleted: bool


class KnownValues(Struct, frozen=True, kw_only=True):
    """The values of a namespace, by key; `next_cursor` is empty after the last page."""

    values: list[KnownValue]
    next_cursor: str


class ValueVersion(Struct, frozen=True, kw_only=True):
    """A version, and the version before it."""

    namespace: str
    key: str
    version: Version
    value: Any
    writer: str
    ts_ms: int
    deleted: bool
    prev_version: Version | None


class ValueVersions(Struct, frozen=True, kw_only=True):
    """The newest versions in ascending order; `next_cursor` leads to older ones, and is empty after the oldest."""

    versions: list[ValueVersion]
    next_cursor: str


class NewSignal(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A signal for a gate; the run may wait there now or later."""

    resolution: Any = None


class SentSignal(Struct, frozen=True, kw_only=True):
    """Whether the signal was accepted, and the status of the run if it resumes."""

    accepted: bool
    run_id: Id
    run_status: str | None


class DiffedEntry(Struct, frozen=True, kw_only=True):
    """An entry of one of the two runs."""

    seq: PositiveInt
    global_seq: PositiveInt
    kind: str
    type: str
    payload: Any


class DiffedRow(Struct, frozen=True, kw_only=True):
    """The entries of both runs at a seq where they differ."""

    one: DiffedEntry | None
    other: DiffedEntry | None


class DiffedSide(Struct, frozen=True):
    """A decision or an effect of one run: status, request and response."""

    status: str
    request_json: str
    response_json: str


class DiffedLedger(Struct, frozen=True, kw_only=True):
    """A decision or an effect of each run at the same step."""

    what: Literal["decision", "effect"]
    place: str
    name: str
    is_same: bool
    one: DiffedSide | None
    other: DiffedSide | None


class RunDiff(Struct, frozen=True, kw_only=True):
    """Two runs that share entries 1 to `shared`; of `places` later seqs, `differing` differ, and the first are here."""

    one: Id
    other: Id
    shared: Count
    places: Count
    differing: Count
    entries: list[DiffedRow]
    ledgers: list[DiffedLedger]

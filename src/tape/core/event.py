"""An event is what a producer writes; an entry is the event with its positions."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, NamedTuple, TypeAlias
from zlib import crc32

from tape.core import codec, subject as subjects
from tape.core.codec import JsonValue
from tape.core.errors import ReservedSubject, TooLarge, UsageError, quoted
from tape.core.ids import ID_IN_WORDS, SYSTEM_PREFIX, Epoch, GlobalSeq, RunId, Seq, is_id

JSON: Final = "application/json"
EVENT: Final = "event"
VALUE: Final = "value"
OVERHEAD: Final = 256  # an entry's size in memory without its payload
MAX_VERSION: Final = 32_767
MAX_ATTRIBUTES: Final = 16
MAX_ATTRIBUTE_LENGTH: Final = 1024
SYNTHETIC: Final = frozenset(
    "replay_complete slow_client_warning client_evicted state_resync_required stream_error goaway run_end"
    " open error".split()
)

_is_kind = re.compile("[a-z]{1,32}").fullmatch
_is_trace = re.compile("[0-9a-f]{32}").fullmatch
_is_span = re.compile("[0-9a-f]{16}").fullmatch
_is_content_type = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]*/[a-z0-9][a-z0-9!#$&^_.+-]*").fullmatch
_is_attribute = re.compile("[a-z][a-z0-9_]{0,63}").fullmatch
_set = object.__setattr__


@dataclass(frozen=True, slots=True)
class Trace:
    """The W3C trace context of the producer; empty without one."""

    trace_id: str = ""
    span_id: str = ""
    parent_span_id: str = ""

    def __post_init__(self) -> None:
        if (self.trace_id or self.span_id) and not (_is_trace(self.trace_id) and _is_span(self.span_id)):
            raise UsageError(f"a trace is 32 and 16 lower-case hex digits, not {self.trace_id!r} and {self.span_id!r}")
        if self.parent_span_id and not _is_span(self.parent_span_id):
            raise UsageError(f"a parent span is 16 lower-case hex digits, not {self.parent_span_id!r}")


NO_TRACE: Final = Trace()

Content: TypeAlias = tuple[
    RunId, str, str, str, int, str, GlobalSeq | None, str, str, str, str, str | None, bytes | None
]


class Columns(NamedTuple):
    """A row of `tape_journal`: first the columns that the journal sets, then the event's."""

    global_seq: GlobalSeq
    seq: Seq
    ts_ms: int
    depth: int
    epoch: Epoch
    crc: int
    run_id: RunId
    kind: str
    type: str
    subject: str
    schema_version: int
    event_id: str
    cause: GlobalSeq | None
    trace_id: str
    span_id: str
    parent_span_id: str
    attributes_json: str
    payload_json: str | None
    payload_bytes: bytes | None


class Entry(Columns):
    """An event at its position, immutable. It is the row itself, so reading and writing convert nothing."""

    @cached_property
    def payload(self) -> JsonValue | bytes:
        return self.payload_bytes if self.payload_json is None else codec.parse(self.payload_json)

    @property
    def prev_value_json(self) -> str:
        """The previous value, for an entry of kind `value`; else empty."""
        facts = self.payload if self.kind == VALUE else None
        return str(facts.get("prev_value_json") or "") if isinstance(facts, dict) else ""

    @cached_property
    def attributes(self) -> Mapping[str, str]:
        parsed = codec.parse(self.attributes_json)
        return {name: str(value) for name, value in parsed.items()} if isinstance(parsed, dict) else {}

    @cached_property
    def event(self) -> Event:
        """The event as it was written, byte for byte; built once per entry."""
        return _rebuild(self)

    @cached_property
    def memo(self) -> dict[str, bytes]:
        """Encoded forms of this entry that several readers share."""
        return {}

    @property
    def content_type(self) -> str:
        return self.attributes["content_type"] if self.payload_json is None else JSON

    @property
    def weight(self) -> int:
        """Its approximate size in memory, in bytes."""
        return _size(self[17], self[18]) + OVERHEAD

    @property
    def is_intact(self) -> bool:
        """Whether the content matches its checksum. Positions need none, because they are dense."""
        try:
            return self.crc == checksum(self[6:])
        except (TypeError, UnicodeEncodeError):
            return False  # a column holds a value that no event can have


@dataclass(frozen=True, slots=True, init=False)
class Event:
    """An event to append. The constructor validates it and fixes its bytes."""

    run_id: RunId
    payload: JsonValue | bytes
    type: str
    kind: str
    subject: str
    schema_version: int
    event_id: str
    cause: GlobalSeq | None
    content_type: str
    trace: Trace | None
    attributes: Mapping[str, str]
    content: Content = field(init=False, repr=False, compare=False)
    crc: int = field(init=False, repr=False, compare=False)

    def __init__(
        self,
        *,
        run_id: str,
        payload: JsonValue | bytes,
        type: str = "message",
        kind: str = EVENT,
        subject: str | None = None,
        schema_version: int = 1,
        event_id: str | None = None,
        cause: int | None = None,
        content_type: str = JSON,
        trace: Trace | None = None,
        attributes: Mapping[str, str] | None = None,
    ) -> None:
        _set(self, "run_id", check_run_id(run_id))
        _set(self, "payload", payload)
        _set(self, "type", _checked_type(type))
        _set(self, "kind", _checked_kind(kind))
        _set(self, "subject", subjects.default(type, run_id) if subject is None else subjects.check(subject))
        _set(self, "schema_version", _checked_version(schema_version))
        _set(self, "event_id", os.urandom(16).hex() if event_id is None else _checked_event_id(event_id))
        _set(self, "cause", _checked_cause(cause))
        _set(self, "content_type", content_type)
        _set(self, "trace", trace)
        _set(self, "attributes", _checked_attributes(attributes) if attributes else {})
        _set(self, "content", _content(self))
        _set(self, "crc", checksum(self.content))

    @property
    def size(self) -> int:
        """The payload's size in bytes."""
        return _size(self.content[11], self.content[12])

    def with_trace(self, trace: Trace) -> Event:
        return replace(self, trace=trace)

    def at(self, global_seq: int, seq: int, ts_ms: int, depth: int, epoch: Epoch) -> Entry:
        """The entry of this event at these positions."""
        return tuple.__new__(Entry, (global_seq, seq, ts_ms, depth, epoch, self.crc, *self.content))


def checksum(content: tuple[object, ...]) -> int:
    """A CRC-32 of all columns that the producer sets."""
    *header_columns, text, blob = content
    header = crc32("\x1f".join(map(str, header_columns)).encode())
    return crc32(text.encode() if isinstance(text, str) else blob or b"", header)  # type: ignore[arg-type]


def check_run_id(run_id: str) -> RunId:
    """Returns the run id if it is valid."""
    if not isinstance(run_id, str) or not is_id(run_id):
        raise UsageError(f"run_id must be {ID_IN_WORDS}, not {quoted(run_id)}")
    return RunId(run_id)


def check_producer(event: Event) -> None:
    """Refuses what only Tape itself may write."""
    if event.kind != EVENT:
        raise UsageError(f"a producer writes kind 'event' only, not {event.kind!r}")
    if event.run_id.startswith(SYSTEM_PREFIX):
        raise UsageError(f"run ids beginning {SYSTEM_PREFIX!r} belong to Tape; choose another than {event.run_id!r}")
    if subjects.is_reserved(event.subject):
        raise ReservedSubject(event.subject)


def _rebuild(entry: Entry) -> Event:
    """Rebuilds the event without checks: it was checked when it was written."""
    event = object.__new__(Event)
    for name in ("run_id", "payload", "type", "kind", "subject", "schema_version", "event_id", "cause", "content_type"):
        _set(event, name, getattr(entry, name))
    _set(event, "trace", Trace(*entry[13:16]) if any(entry[13:16]) else None)
    _set(event, "attributes", {name: text for name, text in entry.attributes.items() if name != "content_type"})
    _set(event, "content", entry[6:])
    _set(event, "crc", entry.crc)
    return event


def _size(text: str | None, blob: bytes | None) -> int:
    if text is None:
        return len(blob or b"")
    return len(text) if text.isascii() else len(text.encode())


def _content(event: Event) -> Content:
    text, blob, attributes = _body(event)
    trace = event.trace or NO_TRACE
    return (
        event.run_id,
        event.kind,
        event.type,
        event.subject,
        event.schema_version,
        event.event_id,
        event.cause,
        trace.trace_id,
        trace.span_id,
        trace.parent_span_id,
        codec.encode(attributes) if attributes else "{}",
        text,
        blob,
    )


def _body(event: Event) -> tuple[str | None, bytes | None, Mapping[str, str]]:
    if event.content_type == JSON:
        return codec.encode(event.payload), None, event.attributes
    if not isinstance(event.content_type, str) or not _is_content_type(event.content_type):
        raise UsageError(f"content_type must be a plain lower-case type/subtype, not {quoted(event.content_type)}")
    if not isinstance(event.payload, bytes):
        raise UsageError(f"a payload of {event.content_type} is bytes, not {type(event.payload).__name__}")
    if len(event.payload) > codec.MAX_BYTES:
        raise TooLarge(f"a payload is at most {codec.MAX_BYTES:,} bytes, not {len(event.payload):,}")
    return None, event.payload, {**event.attributes, "content_type": event.content_type}


def _checked_type(name: str) -> str:
    if not isinstance(name, str) or not is_id(name):
        raise UsageError(f"type must be {ID_IN_WORDS}, not {quoted(name)}")
    if name in SYNTHETIC:
        raise UsageError(f"type {name!r} is the name of a frame; choose another")
    return name


def _checked_kind(kind: str) -> str:
    if kind != EVENT and not (isinstance(kind, str) and _is_kind(kind)):
        raise UsageError(f"kind must be a lower-case word, not {quoted(kind)}")
    return kind


def _checked_version(version: int) -> int:
    if type(version) is not int or not 1 <= version <= MAX_VERSION:
        raise UsageError(f"schema_version must be 1 to {MAX_VERSION:,}, not {quoted(version)}")
    return version


def _checked_event_id(event_id: str) -> str:
    if not isinstance(event_id, str) or not is_id(event_id):
        raise UsageError(f"event_id must be {ID_IN_WORDS}, not {quoted(event_id)}")
    return event_id


def _checked_cause(cause: int | None) -> GlobalSeq | None:
    if cause is None:
        return None
    if type(cause) is not int or not 1 <= cause < 1 << 63:
        raise UsageError(f"cause must be the global_seq of an entry, not {quoted(cause)}")
    return GlobalSeq(cause)


def _checked_attributes(attributes: Mapping[str, str]) -> Mapping[str, str]:
    if len(attributes) > MAX_ATTRIBUTES:
        raise UsageError(f"an event has at most {MAX_ATTRIBUTES} attributes, not {len(attributes)}")
    for name, value in attributes.items():
        if not isinstance(name, str) or not _is_attribute(name) or name == "content_type":
            raise UsageError(f"an attribute is named by a lower-case word other than content_type, not {quoted(name)}")
        if not isinstance(value, str) or not value.isprintable() or len(value) > MAX_ATTRIBUTE_LENGTH:
            raise UsageError(f"attribute {name} must be printable text of at most {MAX_ATTRIBUTE_LENGTH:,} characters")
    return dict(attributes)

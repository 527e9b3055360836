"""The message that a bridge sends for an entry of the journal: byte for byte the same on every attempt."""

from base64 import b64encode
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from typing import Final, assert_never
from urllib.parse import quote

from tape.core import codec
from tape.core.codec import JsonValue
from tape.core.event import Entry
from tape.core.task import Task

JSON: Final = "application/json"
CLOUD_EVENT: Final = "application/cloudevents+json"
_IN_HEADERS: Final = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in '"%')


class Format(Enum):
    """The format of a body: Tape's own envelope, or a CloudEvent in structured mode."""

    TAPE = "tape"
    CLOUDEVENTS = "cloudevents"


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A body, the key by which peers drop duplicates, and the ordering key: messages that share it stay in order."""

    key: str
    order: str
    body: bytes
    content_type: str = JSON
    extra_headers: dict[str, str] = field(default_factory=dict)

    @property
    def headers(self) -> dict[str, str]:
        """All headers, for peers that have headers or attributes."""
        return {"content-type": self.content_type, "tape-key": self.key, **self.extra_headers}


def header(text: str) -> str:
    """A header's value: all but visible ASCII is percent-encoded, as CloudEvents does over HTTP."""
    return quote(text, safe=_IN_HEADERS)


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryFields:
    """The fields of an entry that messages carry, and the key and source of the message."""

    key: str
    source: str
    run_id: str
    seq: int
    global_seq: int
    kind: str
    type: str
    subject: str
    ts_ms: int
    schema_version: int
    trace_id: str
    span_id: str
    payload_json: str
    payload_bytes: bytes = b""
    content_type: str = JSON
    task_fields: dict[str, JsonValue] = field(default_factory=dict)

    @property
    def traceparent(self) -> str:
        """The producer's span as W3C trace context, or an empty text when the entry has none."""
        return f"00-{self.trace_id}-{self.span_id}-01" if self.trace_id and self.span_id else ""


def fields_of_task(task: Task, entry: Entry | None = None) -> EntryFields:
    """The fields of a task's entry, keyed by the task's id; `entry` is needed when its payload is not JSON."""
    return EntryFields(
        key=task.task_id,
        source=f"/tape/reaction/{task.reaction_id}",
        run_id=task.source_run_id,
        seq=task.source_seq,
        global_seq=task.source_global_seq,
        kind=task.kind,
        type=task.type,
        subject=task.subject,
        ts_ms=task.ts_ms,
        schema_version=task.schema_version,
        trace_id=task.trace_id,
        span_id=task.span_id,
        payload_json=task.payload_json,
        payload_bytes=_bytes(entry),
        content_type=JSON if entry is None else entry.content_type,
        task_fields={"task_id": task.task_id, "reaction_id": task.reaction_id},
    )


def fields_of_entry(entry: Entry) -> EntryFields:
    """The fields of an entry, keyed by its epoch and position."""
    return EntryFields(
        key=f"{entry.epoch}.{entry.global_seq}",
        source=f"/tape/journal/{entry.epoch}",
        run_id=entry.run_id,
        seq=entry.seq,
        global_seq=entry.global_seq,
        kind=entry.kind,
        type=entry.type,
        subject=entry.subject,
        ts_ms=entry.ts_ms,
        schema_version=entry.schema_version,
        trace_id=entry.trace_id,
        span_id=entry.span_id,
        payload_json=entry.payload_json or "",
        payload_bytes=_bytes(entry),
        content_type=entry.content_type,
    )


def _bytes(entry: Entry | None) -> bytes:
    return b"" if entry is None else entry.payload_bytes or b""


def message_of(fields: EntryFields, format: Format) -> Message:
    """The message of an entry; messages of one run stay in order."""
    return Message(
        key=fields.key,
        order=fields.run_id,
        body=_body(fields, format).encode(),
        content_type=CLOUD_EVENT if format is Format.CLOUDEVENTS else JSON,
        extra_headers=_extra_headers(fields),
    )


def with_raw_field(fields: dict[str, JsonValue], name: str, text: str) -> str:
    """The fields as a JSON object with one more, whose JSON text is copied as it is stored."""
    return f"{codec.encode(fields)[:-1]},{codec.encode(name)}:{text}}}"


def _body(fields: EntryFields, format: Format) -> str:
    match format:
        case Format.TAPE:
            envelope = _envelope(fields)
            if not fields.payload_json:
                content: dict[str, JsonValue] = {"content_type": fields.content_type, "payload_base64": _base64(fields)}
                envelope |= content
            return with_raw_field(envelope, "payload", fields.payload_json or "null")
        case Format.CLOUDEVENTS:
            event = _cloud_event(fields)
            if fields.payload_json:
                return with_raw_field(event, "data", fields.payload_json)
            return codec.encode({**event, "data_base64": _base64(fields)})
        case _:
            assert_never(format)


def _base64(fields: EntryFields) -> str:
    return b64encode(fields.payload_bytes).decode()


def _envelope(fields: EntryFields) -> dict[str, JsonValue]:
    return {
        **fields.task_fields,
        "run_id": fields.run_id,
        "seq": fields.seq,
        "global_seq": fields.global_seq,
        "kind": fields.kind,
        "type": fields.type,
        "subject": fields.subject,
        "ts_ms": fields.ts_ms,
        "schema_version": fields.schema_version,
        "trace_id": fields.trace_id,
        "span_id": fields.span_id,
    }


def _cloud_event(fields: EntryFields) -> dict[str, JsonValue]:
    """The attributes of a CloudEvent; those it does not define are extensions, in lower case as it requires."""
    event: dict[str, JsonValue] = {
        "specversion": "1.0",
        "id": fields.key,
        "source": fields.source,
        "type": fields.type,
        "subject": fields.subject,
        "time": datetime.fromtimestamp(fields.ts_ms / 1000, UTC).isoformat(timespec="milliseconds"),
        "partitionkey": fields.run_id,
        "sequence": f"{fields.global_seq:020}",
        "runid": fields.run_id,
        "seq": str(fields.seq),
        "kind": fields.kind,
        "schemaversion": fields.schema_version,
    }
    known = {"datacontenttype": fields.content_type, "traceparent": fields.traceparent}
    return {**event, **{name: value for name, value in known.items() if value}}


def _extra_headers(fields: EntryFields) -> dict[str, str]:
    headers = {
        "tape-subject": fields.subject,
        "tape-type": fields.type,
        "tape-run-id": fields.run_id,
        "tape-global-seq": str(fields.global_seq),
        "traceparent": fields.traceparent,
    }
    return {name: value for name, value in headers.items() if value}

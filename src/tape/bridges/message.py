"""What a bridge gives to its peer: an entry of the journal, the same to the byte on every attempt."""

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
    """How a body is written: as an envelope of Tape's own, or as a CloudEvent in structured mode."""

    TAPE = "tape"
    CLOUDEVENTS = "cloudevents"


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A body, by which key a second one is known for the same, and beside which ones it has an order."""

    key: str
    order: str
    body: bytes
    content_type: str = JSON
    facts: dict[str, str] = field(default_factory=dict)

    @property
    def headers(self) -> dict[str, str]:
        """What is said beside the body, wherever a peer has room for it."""
        return {"content-type": self.content_type, "tape-key": self.key, **self.facts}


def header(text: str) -> str:
    """A text as a header takes it: what is no visible ASCII is percent-encoded, as CloudEvents does over HTTP."""
    return quote(text, safe=_IN_HEADERS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """An entry as bridges know it, and for whom it is sent; content that is not JSON is bytes of another type."""

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
    of_task: dict[str, JsonValue] = field(default_factory=dict)

    @property
    def traceparent(self) -> str:
        """The span that said it as W3C trace context writes it, or nothing where none is known."""
        return f"00-{self.trace_id}-{self.span_id}-01" if self.trace_id and self.span_id else ""


def of_task(task: Task, entry: Entry | None = None) -> Said:
    """The entry that triggered a task, which is given if its content is not JSON; its key is the task's id."""
    return Said(
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
        of_task={"task_id": task.task_id, "reaction_id": task.reaction_id},
    )


def of_entry(entry: Entry) -> Said:
    """An entry for its own sake; its key is its place, in the journal whose epoch it names."""
    return Said(
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


def message_of(said: Said, format: Format) -> Message:
    """Its message, whose order is that of its run."""
    return Message(
        key=said.key,
        order=said.run_id,
        body=_body(said, format).encode(),
        content_type=CLOUD_EVENT if format is Format.CLOUDEVENTS else JSON,
        facts=_facts(said),
    )


def joined(said: dict[str, JsonValue], name: str, text: str) -> str:
    """A JSON object with one more field, whose text stays as it was stored."""
    return f"{codec.encode(said)[:-1]},{codec.encode(name)}:{text}}}"


def _body(said: Said, format: Format) -> str:
    match format:
        case Format.TAPE:
            envelope = _envelope(said)
            if not said.payload_json:
                content: dict[str, JsonValue] = {"content_type": said.content_type, "payload_base64": _base64(said)}
                envelope |= content
            return joined(envelope, "payload", said.payload_json or "null")
        case Format.CLOUDEVENTS:
            event = _cloud_event(said)
            if said.payload_json:
                return joined(event, "data", said.payload_json)
            return codec.encode({**event, "data_base64": _base64(said)})
        case _:
            assert_never(format)


def _base64(said: Said) -> str:
    return b64encode(said.payload_bytes).decode()


def _envelope(said: Said) -> dict[str, JsonValue]:
    return {
        **said.of_task,
        "run_id": said.run_id,
        "seq": said.seq,
        "global_seq": said.global_seq,
        "kind": said.kind,
        "type": said.type,
        "subject": said.subject,
        "ts_ms": said.ts_ms,
        "schema_version": said.schema_version,
        "trace_id": said.trace_id,
        "span_id": said.span_id,
    }


def _cloud_event(said: Said) -> dict[str, JsonValue]:
    """Its attributes; those that CloudEvents does not know are extensions, in lower case as it wants them."""
    event: dict[str, JsonValue] = {
        "specversion": "1.0",
        "id": said.key,
        "source": said.source,
        "type": said.type,
        "subject": said.subject,
        "time": datetime.fromtimestamp(said.ts_ms / 1000, UTC).isoformat(timespec="milliseconds"),
        "partitionkey": said.run_id,
        "sequence": f"{said.global_seq:020}",
        "runid": said.run_id,
        "seq": str(said.seq),
        "kind": said.kind,
        "schemaversion": said.schema_version,
    }
    known = {"datacontenttype": said.content_type, "traceparent": said.traceparent}
    return {**event, **{name: value for name, value in known.items() if value}}


def _facts(said: Said) -> dict[str, str]:
    facts = {
        "tape-subject": said.subject,
        "tape-type": said.type,
        "tape-run-id": said.run_id,
        "tape-global-seq": str(said.global_seq),
        "traceparent": said.traceparent,
    }
    return {name: value for name, value in facts.items() if value}

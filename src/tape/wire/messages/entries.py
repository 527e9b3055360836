"""Entries and events on the wire; an entry is encoded once for all its readers."""

from typing import Final

from tape.core import codec
from tape.core.caller import Caller
from tape.core.errors import UsageError
from tape.core.event import JSON, Entry, Event
from tape.core.ids import Epoch
from tape.wire import tape_pb2 as pb, traceparent
from tape.wire.message_mapping import build

MEMO: Final = "grpc"


def entry_message(entry: Entry) -> pb.EventEntry:
    (
        global_seq, seq, ts_ms, depth, epoch, crc, run_id, kind, type_, subject, schema_version, event_id, cause,
        trace_id, span_id, parent_span_id, attributes_json, payload_json, payload_bytes,
    ) = entry  # fmt: skip
    return pb.EventEntry(
        run_id=run_id, seq=seq, kind=kind, payload_json=payload_json, ts_ms=ts_ms, global_seq=global_seq,
        subject=subject, schema_version=schema_version, trace_id=trace_id, span_id=span_id,
        parent_span_id=parent_span_id, type=type_, event_id=event_id, cause=cause, depth=depth, epoch=epoch,
        attributes_json=attributes_json, payload_bytes=payload_bytes, crc=crc,
    )  # fmt: skip


def entry_value(sent: pb.EventEntry) -> Entry:
    """The entry again, to the byte."""
    is_json = not sent.HasField("payload_bytes")
    columns = (
        sent.global_seq, sent.seq, sent.ts_ms, sent.depth, sent.epoch, sent.crc, sent.run_id, sent.kind, sent.type,
        sent.subject, sent.schema_version, sent.event_id, sent.cause if sent.HasField("cause") else None,
        sent.trace_id, sent.span_id, sent.parent_span_id, sent.attributes_json,
        sent.payload_json if is_json else None, None if is_json else sent.payload_bytes,
    )  # fmt: skip
    return tuple.__new__(Entry, columns)


def encoded(entry: Entry) -> bytes:
    """An EventEntry in bytes."""
    part = in_batch(entry)
    return part[1 + next(place for place, byte in enumerate(part[1:], 1) if byte < 128) :]


def in_batch(entry: Entry) -> bytes:
    """The same as a part of an EventBatch, which is nothing but such parts in a row."""
    memo = entry.memo
    found = memo.get(MEMO)
    if found is None:
        message = entry_message(entry).SerializeToString()
        found = memo[MEMO] = b"\x0a" + _varint(len(message)) + message
    return found


def journal_entry(entry: Entry) -> pb.JournalEntry:
    return build(
        pb.JournalEntry,
        seq=entry.seq,
        kind=entry.kind,
        payload_json=entry.payload_json,
        ts_ms=entry.ts_ms,
        global_seq=entry.global_seq,
        subject=entry.subject,
        schema_version=entry.schema_version,
        trace_id=entry.trace_id,
        span_id=entry.span_id,
        parent_span_id=entry.parent_span_id,
        run_id=entry.run_id,
        type=entry.type,
        epoch=entry.epoch,
    )


def event_message(event: Event) -> pb.Event:
    is_json = event.content_type == JSON
    return build(
        pb.Event,
        run_id=event.run_id,
        type=event.type,
        payload_json=codec.encode(event.payload) if is_json and not isinstance(event.payload, bytes) else "",
        payload_bytes=event.payload if isinstance(event.payload, bytes) else b"",
        subject=event.subject,
        schema_version=event.schema_version,
        event_id=event.event_id,
        cause=event.cause,
        content_type="" if is_json else event.content_type,
        attributes=dict(event.attributes),
        traceparent=traceparent.written(event.trace),
        parent_span_id=event.trace.parent_span_id if event.trace else "",
    )


def event_value(message: pb.Event, caller: Caller) -> Event:
    """The event; its span, cause and version are its caller's unless it has its own."""
    is_json = message.content_type in ("", JSON)
    if is_json and not message.payload_json:
        raise UsageError("an event has a payload_json; null is one")
    return Event(
        run_id=message.run_id,
        payload=codec.decode(message.payload_json) if is_json else message.payload_bytes,
        type=message.type or "message",
        subject=message.subject or None,
        schema_version=message.schema_version or caller.schema_version,
        event_id=message.event_id or None,
        cause=message.cause if message.HasField("cause") else caller.cause,
        content_type=message.content_type or JSON,
        trace=traceparent.parse(message.traceparent, message.parent_span_id) or caller.trace,
        attributes=dict(message.attributes),
    )


def appended(event: Event, at: pb.Position, epoch: int) -> Entry:
    """What an event has become."""
    return event.at(at.global_seq, at.seq, at.ts_ms, at.depth, Epoch(epoch))


def _varint(number: int) -> bytes:
    parts = bytearray()
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    parts.append(number)
    return bytes(parts)

"""Entries and events on the wire; a stream encodes an entry once, however many read it."""

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


def entry_value(said: pb.EventEntry) -> Entry:
    """The entry again, to the byte."""
    is_json = not said.HasField("payload_bytes")
    columns = (
        said.global_seq, said.seq, said.ts_ms, said.depth, said.epoch, said.crc, said.run_id, said.kind, said.type,
        said.subject, said.schema_version, said.event_id, said.cause if said.HasField("cause") else None,
        said.trace_id, said.span_id, said.parent_span_id, said.attributes_json,
        said.payload_json if is_json else None, None if is_json else said.payload_bytes,
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


def event_value(said: pb.Event, caller: Caller) -> Event:
    """The event; what it does not say itself of its span, its cause and its version, its caller does."""
    is_json = said.content_type in ("", JSON)
    if is_json and not said.payload_json:
        raise UsageError("an event has a payload_json; null is one")
    return Event(
        run_id=said.run_id,
        payload=codec.decode(said.payload_json) if is_json else said.payload_bytes,
        type=said.type or "message",
        subject=said.subject or None,
        schema_version=said.schema_version or caller.schema_version,
        event_id=said.event_id or None,
        cause=said.cause if said.HasField("cause") else caller.cause,
        content_type=said.content_type or JSON,
        trace=traceparent.parse(said.traceparent, said.parent_span_id) or caller.trace,
        attributes=dict(said.attributes),
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

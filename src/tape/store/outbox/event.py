"""An outbox event as the parameters of a statement, and back from a row."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from tape.core import codec
from tape.core.errors import Corrupt
from tape.core.outbox import OutboxEvent
from tape.store.clock import now_ms
from tape.store.connection import Row


def parameters(event: OutboxEvent, generation: int, channel: str) -> Mapping[str, str | None]:
    """All values are text, because drivers disagree on all other types."""
    return {
        "event_id": str(event.event_id),
        "event_type": event.event_type,
        "event_version": str(event.event_version),
        "occurred_at": event.occurred_at.astimezone(UTC).isoformat(),
        "source": event.source,
        "target": event.target,
        "content_class": event.content_class,
        "channel": channel,
        "generation": str(generation),
        "workspace_id": None if event.workspace_id is None else str(event.workspace_id),
        "payload": event.payload_json,
        "idempotency_key": event.idempotency_key,
        "trace_context": event.trace_context,
        "order_key": event.order_key,
        "now_ms": str(now_ms()),
    }


def event_of(row: Row) -> OutboxEvent:
    """The event of a row; a row that was written by hand may hold no valid event."""
    return OutboxEvent(**event_fields(row))


def event_fields(row: Row) -> dict[str, Any]:
    event_id, event_type, version, occurred_at, source, target, content_class, workspace, payload, key, *rest = row
    trace, order_key = rest
    fields = codec.parse(payload)
    if not isinstance(fields, dict):
        raise Corrupt(f"the payload of outbox row {event_id} is no object with named fields")
    return {
        "event_id": UUID(event_id),
        "event_type": event_type,
        "event_version": version,
        "occurred_at": datetime.fromisoformat(occurred_at),
        "source": source,
        "target": target,
        "content_class": content_class,
        "workspace_id": None if workspace is None else UUID(workspace),
        "payload": fields,
        "idempotency_key": key,
        "trace_context": trace,
        "order_key": order_key,
    }

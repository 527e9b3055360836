"""The schemas of `/outbox`."""

from typing import Annotated, Any, Literal
from uuid import UUID

from msgspec import Meta, Struct

from tape.core.outbox import DeliveryState, OutboxRecord
from tape.server.routes.schemas import Count
from tape.store.outbox.table import OutboxStats

Status = Literal["pending", "in_flight", "delivered", "failed"]
Text = Annotated[str, Meta(max_length=512)]


class OutboxRow(Struct, frozen=True, kw_only=True):
    """A row: the event's envelope and the state of its deliveries."""

    event_id: UUID
    event_type: str
    event_version: int
    occurred_at: str
    source: str
    target: str | None
    workspace_id: UUID | None
    payload: dict[str, Any]
    idempotency_key: str
    trace_context: str | None
    content_class: str
    order_key: str | None
    generation: Count
    channel: str
    status: Status
    attempts: Count
    last_error: str | None
    failure_history: list[dict[str, Any]]
    first_failed_at_ms: int | None
    deleted_at_ms: int | None

    @classmethod
    def of(cls, record: OutboxRecord) -> "OutboxRow":
        event, state = record.event, record._asdict()
        del state["event"], state["position"]
        return cls(
            event_id=event.event_id,
            event_type=event.event_type,
            event_version=event.event_version,
            occurred_at=event.occurred_at.isoformat(),
            source=event.source,
            target=event.target,
            workspace_id=event.workspace_id,
            payload=dict(event.payload),
            idempotency_key=event.idempotency_key,
            trace_context=event.trace_context,
            content_class=event.content_class,
            order_key=event.order_key,
            **state,
        )


class OutboxRows(Struct, frozen=True, kw_only=True):
    """Rows, newest first; with a `next_cursor` there are older ones."""

    rows: list[OutboxRow]
    next_cursor: str = ""


class Delivery(Struct, frozen=True, kw_only=True):
    """The state of the delivery of a row to one handler."""

    handler_name: str
    status: Status
    attempts: Count
    last_error: str | None
    lease_owner: str | None


class OutboxDetail(Struct, frozen=True, kw_only=True):
    """A row with each of its deliveries."""

    row: OutboxRow
    deliveries: list[Delivery]

    @classmethod
    def of(cls, record: OutboxRecord, deliveries: list[DeliveryState]) -> "OutboxDetail":
        return cls(row=OutboxRow.of(record), deliveries=[Delivery(**each._asdict()) for each in deliveries])


class OutboxStatus(Struct, frozen=True, kw_only=True):
    """Counts, ages and delivery times of an outbox, and advice on what to do."""

    pending: Count
    in_flight: Count
    failed: Count
    oldest_ms: Count
    rows: Count
    ack_p50_ms: float
    ack_p99_ms: float
    notify_queue_usage: float
    advice: list[str]

    @classmethod
    def of(cls, stats: OutboxStats) -> "OutboxStatus":
        return cls(**stats._asdict(), advice=list(stats.advice))


class OutboxReplay(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The rows to replay: the named ones, else the dead letters of a type, of a handler, or all."""

    event_ids: Annotated[list[UUID], Meta(max_length=1000)] = []
    event_type: Text = ""
    handler_name: Text = ""
    generation: Count | None = None
    replayed_by: Annotated[str, Meta(min_length=1, max_length=128)] = "http"


class OutboxReplayed(Struct, frozen=True, kw_only=True):
    """The number of rows that are pending again."""

    replayed: Count

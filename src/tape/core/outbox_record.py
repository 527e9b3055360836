"""The rows of an outbox and its statistics, as an operator sees them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tape.core import codec
from tape.core.codec import JsonValue
from tape.core.outbox import OutboxEvent, OutboxStatus

MANY_ROWS: Final = 5_000_000
TOO_MANY_ROWS: Final = 20_000_000
SLOW_ACK_MS: Final = 500.0
FULL_QUEUE: Final = 0.25
ROW_BYTES: Final = 1_024  # of the names of its fields, its ids, times and numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxRecord(OutboxEvent):
    """A row of the outbox: an event, its status and its failures."""

    generation: int
    channel: str
    status: OutboxStatus
    attempts: int
    last_error: str | None
    failure_history: tuple[Mapping[str, JsonValue], ...]
    first_failed_at_ms: int | None
    deleted_at_ms: int | None
    position: int

    @property
    def size(self) -> int:
        """An upper bound of its encoded size in bytes."""
        names = [self.event_type, self.source, self.target, self.idempotency_key, self.trace_context, self.order_key]
        others = codec.encode([*names, self.content_class, self.last_error, [*map(dict, self.failure_history)]])
        return ROW_BYTES + codec.size(self.payload_json) + len(others.encode())


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryState:
    """The state of the delivery of one event to one handler."""

    handler_name: str
    status: OutboxStatus
    attempts: int
    last_error: str | None
    lease_owner: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxDetail:
    """A row with each of its deliveries."""

    row: OutboxRecord
    deliveries: tuple[DeliveryState, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxStats:
    """Counts, ages and delivery times of an outbox, in milliseconds; `advice` is what to do about exceeded limits."""

    pending: int
    in_flight: int
    failed: int
    oldest_ms: int
    rows: int
    ack_p50_ms: float
    ack_p99_ms: float
    notify_queue_usage: float
    advice: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        advice = {
            "keep less, or divide the table by time (tape outbox partition)": self.rows > MANY_ROWS,
            "relay it elsewhere (tape outbox relay)": self.rows > TOO_MANY_ROWS or self.ack_p99_ms > SLOW_ACK_MS,
            "find who listens inside a long transaction": self.notify_queue_usage >= FULL_QUEUE,
        }
        object.__setattr__(self, "advice", tuple(text for text, is_due in advice.items() if is_due))


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionResult:
    """Rows marked, rows deleted, and handled keys deleted by retention."""

    marked: int
    deleted: int
    forgotten: int

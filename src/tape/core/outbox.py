"""Values of the outbox: events, subscriptions of handlers, retry policies and the retention."""

import hashlib
import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final, Literal, NamedTuple, TypeAlias, assert_never
from uuid import UUID

from tape.core import codec
from tape.core.codec import JsonValue
from tape.core.errors import UsageError, quoted
from tape.core.task import Died, Done, Failed, Outcome, Released

Begin: TypeAlias = Literal["pending", "now", "all"] | int

MAX_GENERATION: Final = 2**63 - 1
MAX_RETRIES: Final = 2**31 - 2
MAX_TEXT: Final = 512
MAX_ERROR: Final = 4096
NUL: Final = "\\u0000"

_is_class = re.compile("[a-z][a-z0-9_]{0,31}").fullmatch
_is_channel = re.compile("[a-z][a-z0-9_]{0,62}").fullmatch
_is_handler = re.compile("[a-z0-9][a-z0-9_-]*([.][a-z0-9][a-z0-9_-]*)+").fullmatch
_generation_of = re.compile("outbox_gen_([0-9]+)(_[a-z0-9_]+)?").fullmatch
_trace_of = re.compile("[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}").fullmatch
_set = object.__setattr__


class OutboxStatus(StrEnum):
    """The status of a row or of a delivery; failed rows are the dead letters."""

    PENDING = "pending"
    IN_FLIGHT = "in_flight"
    DELIVERED = "delivered"
    FAILED = "failed"


def new_event_id() -> UUID:
    """A UUID version 7: ids rise with time, so that new rows are neighbours in an index."""
    stamp = (time.time_ns() // 1_000_000).to_bytes(6, "big")
    tail = os.urandom(10)
    return UUID(bytes=stamp + bytes([0x70 | tail[0] & 0x0F, tail[1], 0x80 | tail[2] & 0x3F]) + tail[3:])


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxEvent:
    """An event that is published inside a business transaction. The idempotency key is its id by default.

    An event without a target is for every handler. Events with one `order_key` can be handled in their order.
    """

    event_type: str
    source: str
    payload: Mapping[str, JsonValue]
    event_id: UUID = field(default_factory=new_event_id)
    event_version: int = 1
    occurred_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    target: str | None = None
    workspace_id: UUID | None = None
    idempotency_key: str = ""
    trace_context: str | None = None
    content_class: str = "internal"
    order_key: str | None = None
    payload_json: str = field(init=False, repr=False, compare=False)

    @property
    def span(self) -> tuple[str, str]:
        """The ids of the producer's trace and span, or empty texts."""
        found = _trace_of(self.trace_context or "")
        return (found[1], found[2]) if found else ("", "")

    def __post_init__(self) -> None:
        for name in ("event_type", "source", "content_class"):
            check_text(name, getattr(self, name))
        for name in ("target", "order_key", "trace_context"):
            if getattr(self, name) is not None:
                check_text(name, getattr(self, name))
        if not isinstance(self.event_version, int) or not 1 <= self.event_version < 2**31:
            raise UsageError(f"event_version is a whole number from 1 on, not {quoted(self.event_version)}")
        if self.occurred_at.tzinfo is None:
            raise UsageError("occurred_at needs a time zone")
        _set(self, "payload_json", _payload_text(self.payload))
        _set(self, "idempotency_key", self.idempotency_key or str(self.event_id))
        check_text("idempotency_key", self.idempotency_key)


def _payload_text(payload: object) -> str:
    if not isinstance(payload, Mapping):
        raise UsageError(f"a payload is an object with named fields, not {type(payload).__name__}")
    text = codec.encode(dict(payload))
    if NUL in text.replace("\\\\", ""):
        raise UsageError("a payload cannot hold the character NUL, which Postgres refuses inside your transaction")
    return text


def check_text(name: str, value: object) -> None:
    if not isinstance(value, str) or not 1 <= len(value) <= MAX_TEXT or not value.isprintable():
        raise UsageError(f"{name} is 1 to {MAX_TEXT} visible characters, not {quoted(value)}")


def check_generation(generation: int) -> int:
    if isinstance(generation, bool) or not isinstance(generation, int) or not 0 <= generation <= MAX_GENERATION:
        raise UsageError(f"a generation is a whole number from 0 on, not {quoted(generation)}")
    return generation


def channel(generation: int, processing_class: str | None = None) -> str:
    """The notification channel of a generation, or of one processing class in it."""
    if processing_class is not None and not _is_class(processing_class):
        raise UsageError(f"a processing class is like llm_bound, not {quoted(processing_class)}")
    suffix = f"_{processing_class}" if processing_class else ""
    return f"outbox_gen_{check_generation(generation)}{suffix}"


def own_channel(name: str | None, generation: int) -> str:
    """The channel to listen on; refuses a channel of another generation."""
    if name is None:
        return channel(generation)
    found = _generation_of(name)
    if not _is_channel(name) or found is None or int(found[1]) != generation:
        raise UsageError(f"generation {generation} listens on outbox_gen_{generation} or its classes, not {name!r}")
    return name


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often and when a failed delivery is retried; the default is five retries, so six attempts."""

    retries: int = 5
    base: timedelta = timedelta(seconds=1)
    multiplier: float = 2.0
    cap: timedelta = timedelta(minutes=5)

    def __post_init__(self) -> None:
        if type(self.retries) is not int or not 0 <= self.retries <= MAX_RETRIES:
            raise UsageError(f"retries is a whole number from 0 to {MAX_RETRIES}, not {quoted(self.retries)}")
        if self.multiplier < 1 or not timedelta(0) <= self.base <= self.cap:
            raise UsageError("a retry policy has a multiplier from 1 and a base up to its cap")

    @property
    def attempts(self) -> int:
        return self.retries + 1

    def delay(self, attempts: int, jitter: float) -> timedelta:
        """The delay after `attempts` attempts: exponential up to the cap, times a jitter of 0 to 1."""
        most = self.cap.total_seconds()
        steps = min(max(attempts - 1, 0), 64)
        return timedelta(seconds=min(self.base.total_seconds() * self.multiplier**steps, most) * jitter)


DEFAULT_RETRY_POLICY: Final = RetryPolicy()


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerSubscription:
    """The events of its generation that a handler gets: no types means all, no target those without a target.

    `begin` applies to a new handler, and to the rows that a wider filter adds: "pending" selects every row that has
    not ended, "now" none, "all" every stored row, a number the rows from that position on. All later rows follow.
    An ordered handler gets events with one order_key one after the other.
    """

    handler_name: str
    generation: int
    channel: str
    event_types: tuple[str, ...] = ()
    target: str | None = None
    is_ordered: bool = False
    begin: Begin = "pending"
    max_attempts: int = DEFAULT_RETRY_POLICY.attempts

    def __post_init__(self) -> None:
        if len(self.handler_name) > 128 or not _is_handler(self.handler_name):
            raise UsageError(
                f"a handler is named with its scope, like orders.invoice_writer, not {self.handler_name!r}"
            )
        own_channel(self.channel, self.generation)
        is_number = isinstance(self.begin, int) and not isinstance(self.begin, bool)
        is_position = is_number and self.begin in range(2**63)
        if not is_position and self.begin not in ("pending", "now", "all"):
            raise UsageError(f"begin is 'pending', 'now', 'all' or a position below 2**63, not {quoted(self.begin)}")

    @property
    def version(self) -> str:
        """Identifies this definition of the handler; two deployments that agree on all of it share one version."""
        types = sorted(set(self.event_types))
        fields = [self.handler_name, self.channel, types, self.target, self.is_ordered, self.max_attempts]
        return hashlib.sha256(codec.encode(fields).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxRetention:
    """How long rows are kept: active, then marked as deleted for a grace period, then deleted.

    Handled keys must be kept for longer than the rows, or a replayed row would be handled twice.
    """

    active: timedelta = timedelta(days=45)
    grace: timedelta = timedelta(days=7)
    handled_active: timedelta = timedelta(days=60)
    handled_grace: timedelta = timedelta(days=7)

    def __post_init__(self) -> None:
        if min(self.active, self.grace, self.handled_active, self.handled_grace) < timedelta(0):
            raise UsageError("a retention is never negative")
        if self.handled_active <= self.active + self.grace:
            raise UsageError(
                f"event_handled is kept for {self.handled_active.days} days, which must be more than the "
                f"{(self.active + self.grace).days} days of the outbox: a row replayed later would be handled twice"
            )


def with_trace(event: OutboxEvent, traceparent: str | None) -> OutboxEvent:
    """The event with the producer's span, unless it has one."""
    return (
        event if traceparent is None or event.trace_context is not None else replace(event, trace_context=traceparent)
    )


class Settled(NamedTuple):
    """A delivery's state after an attempt has ended."""

    status: OutboxStatus
    error: str | None = None
    after: timedelta = timedelta(0)
    is_released: bool = False


def settled(outcome: Outcome, attempts: int, policy: RetryPolicy, jitter: float) -> Settled:
    """The next state of a delivery after the outcome of its newest attempt; jitter is 0 to 1."""
    match outcome:
        case Done():
            return Settled(OutboxStatus.DELIVERED)
        case Died(error):
            return Settled(OutboxStatus.FAILED, error[:MAX_ERROR])
        case Released():
            return Settled(OutboxStatus.PENDING, is_released=True)
        case Failed(error, after):
            if attempts >= policy.attempts:
                return Settled(OutboxStatus.FAILED, error[:MAX_ERROR])
            wait = policy.delay(attempts, jitter) if after is None else after
            return Settled(OutboxStatus.PENDING, error[:MAX_ERROR], wait)
        case _:
            assert_never(outcome)

"""All traces, log events and metrics. docs/signals.md has them in a table."""

import json
import logging
import sys
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Final

from tape.core.event import Trace

LATENCIES_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
_NO_SPAN: Final[AbstractContextManager[None]] = nullcontext()


def current_trace() -> Trace | None:
    """The current span, if the application uses OpenTelemetry; Tape never imports it by itself."""
    otel = sys.modules.get("opentelemetry.trace")
    if otel is None:
        return None
    span = otel.get_current_span()
    context = span.get_span_context()
    if not context.is_valid:
        return None
    parent = getattr(span, "parent", None)
    return Trace(f"{context.trace_id:032x}", f"{context.span_id:016x}", f"{parent.span_id:016x}" if parent else "")


def is_watched() -> bool:
    """Whether a root span would be recorded."""
    otel = sys.modules.get("opentelemetry.trace")
    return otel is not None and hasattr(otel.get_tracer_provider(), "add_span_processor")


def span(name: str, trace_id: str, span_id: str) -> AbstractContextManager[None]:
    """A child of a span, perhaps of another process; no span if it would not be recorded."""
    otel = sys.modules.get("opentelemetry.trace")
    if otel is None or not (trace_id or is_watched()):
        return _NO_SPAN
    return _span(otel, name, trace_id, span_id)


def producer_span(name: str) -> Any | None:
    """A span for a message that another process handles; the caller ends it. None if it would not be recorded."""
    otel = sys.modules.get("opentelemetry.trace")
    if otel is None or not hasattr(otel.get_tracer_provider(), "add_span_processor"):
        return None
    return otel.get_tracer("tape").start_span(name, kind=otel.SpanKind.PRODUCER)


@contextmanager
def _span(otel: Any, name: str, trace_id: str, span_id: str) -> Iterator[None]:
    context = None
    if trace_id and span_id:
        flags = otel.TraceFlags(otel.TraceFlags.SAMPLED)
        parent = otel.SpanContext(int(trace_id, 16), int(span_id, 16), is_remote=True, trace_flags=flags)
        context = otel.set_span_in_context(otel.NonRecordingSpan(parent))
    with otel.get_tracer("tape").start_as_current_span(name, context=context):
        yield


class Log:
    """Log events: `noun.verb` with fields, which are never part of the text."""

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(name)

    def error(self, event: str, **facts: object) -> None:
        """Something a person must act on."""
        self._logger.error(event, extra={"facts": facts})

    def warning(self, event: str, **facts: object) -> None:
        """A limit was reached."""
        self._logger.warning(event, extra={"facts": facts})

    def info(self, event: str, **facts: object) -> None:
        """Something began or ended."""
        self._logger.info(event, extra={"facts": facts})


log: Final = Log("tape")


class JsonLines(logging.Formatter):
    """A line of JSON for each event; text from outside is escaped."""

    def format(self, record: logging.LogRecord) -> str:
        head = {"ts_ms": round(record.created * 1000), "level": record.levelname.lower(), "event": record.getMessage()}
        return json.dumps({**head, **getattr(record, "facts", {})}, default=str)


@dataclass(slots=True)
class Counter:
    """A number that only rises, per label values; labels have few values and never ids."""

    name: str
    help: str
    labels: tuple[str, ...] = ()
    values: dict[tuple[str, ...], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.labels:
            self.values[()] = 0

    def add(self, amount: int = 1, *labels: str) -> None:
        self.values[labels] = self.values.get(labels, 0) + amount

    @property
    def total(self) -> int:
        return sum(self.values.values())


@dataclass(slots=True)
class Gauge:
    """A number that rises and falls."""

    name: str
    help: str
    value: float = 0


@dataclass(slots=True)
class Histogram:
    """Durations, counted in buckets."""

    name: str
    help: str
    bounds: Sequence[float] = LATENCIES_S
    total: float = 0.0
    counts: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.counts = [0] * (len(self.bounds) + 1)

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    @property
    def cumulated(self) -> list[int]:
        return list(accumulate(self.counts))


class Meters:
    """The metrics of one server."""

    def __init__(self) -> None:
        self.published = Counter("tape_events_published_total", "Events appended through this server.")
        self.streamed = Counter("tape_events_streamed_total", "Entries written to streams.")
        self.dropped = Counter("tape_streams_dropped_total", "Streams that ended with a gap or an eviction.")
        self.opened = Counter("tape_streams_opened_total", "Streams that were opened.")
        self.warned = Counter("tape_slow_client_warnings_total", "Warnings to slow clients.")
        self.evicted = Counter("tape_evictions_total", "Streams ended because the client was slow.", ("reason",))
        self.resynced = Counter("tape_resyncs_total", "Resync frames sent to clients.", ("reason",))
        self.refused = Counter("tape_appends_refused_total", "Appends that were refused.", ("code",))
        self.requests = Counter("tape_requests_total", "Requests answered.", ("method", "route", "status"))
        self.append_seconds = Histogram("tape_append_seconds", "Seconds from a complete request to its positions.")
        self.store_up = Gauge("tape_store_up", "Whether the store answers.")
        self.runs_open = Gauge("tape_runs_open", "Runs that are open.")
        self.subscribers = Gauge("tape_subscribers", "Streams that are open.")
        self.lag = Gauge("tape_stream_lag_entries", "How far the slowest live stream is behind.")
        self.head = Gauge("tape_journal_head", "The last position.")
        self.floor = Gauge("tape_journal_floor", "The first retained position.")

        self.outbox_up = Gauge("tape_outbox_up", "Whether an outbox exists and answers.")
        self.outbox_pending = Gauge("tape_outbox_pending", "Rows that no listener has fanned out yet.")
        self.outbox_in_flight = Gauge("tape_outbox_in_flight", "Rows with a delivery that has not ended.")
        self.outbox_failed = Gauge("tape_outbox_failed", "Dead letters: rows with a failed delivery.")
        self.outbox_rows = Gauge("tape_outbox_rows", "All rows, as the database estimates.")
        self.outbox_oldest_s = Gauge("tape_outbox_oldest_seconds", "Age of the oldest row that has not ended.")
        self.outbox_ack_p50_s = Gauge(
            "tape_outbox_ack_p50_seconds", "Median seconds from publish to the last delivery."
        )
        self.outbox_ack_p99_s = Gauge("tape_outbox_ack_p99_seconds", "99th percentile of the same.")
        self.outbox_notify_queue = Gauge(
            "tape_outbox_notify_queue_usage", "How full Postgres's notification queue is (0 to 1)."
        )

    def all(self) -> list[Counter | Gauge | Histogram]:
        return list(vars(self).values())

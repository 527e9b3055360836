"""Publishes inside the caller's own transaction."""

import os
from collections.abc import Awaitable
from functools import cache
from typing import Any, Protocol

from tape.core.outbox import OutboxEvent, channel, check_generation, with_trace
from tape.settings import Settings
from tape.store import caller_connection
from tape.store.connection import Row
from tape.store.outbox.deliveries import FILE
from tape.store.outbox.event import parameters
from tape.telemetry import current_trace, log, producer_span


class EventPublisher(Protocol):
    """Publishes an event if and only if the caller's transaction commits."""

    def publish(self, event: OutboxEvent) -> Awaitable[object]: ...


class OutboxPublisher:
    """Publishes in the transaction that a connection is in."""

    def __init__(
        self,
        connection: object,
        *,
        generation: int | None = None,
        processing_class: str | None = None,
        schema: str = caller_connection.SCHEMA,
    ) -> None:
        self._connection = connection
        self._generation = own_generation() if generation is None else check_generation(generation)
        self._channel = channel(self._generation, processing_class)
        self._schema = schema

    def publish(self, event: OutboxEvent) -> Awaitable[list[Row]]:
        """Inserts the event. Await the result on an async connection; on a sync one the insert is done already."""
        span = None if event.trace_context else producer_span(f"publish {event.event_type}")
        if span is None:
            return self._insert(with_trace(event, _traceparent()))
        context = span.get_span_context()
        traced = with_trace(event, f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}")
        try:
            answer = self._insert(traced)
        except BaseException:
            span.end()
            raise
        return _end_span_after(span, answer)

    def _insert(self, event: OutboxEvent) -> Awaitable[list[Row]]:
        values = parameters(event, self._generation, self._channel)
        answer = caller_connection.execute(self._connection, FILE, "publish", values, self._schema)
        log.info("outbox.published", **log_fields(event, self._generation, self._channel))
        return answer


def publish(
    event: OutboxEvent,
    connection: object,
    *,
    generation: int | None = None,
    processing_class: str | None = None,
    schema: str = caller_connection.SCHEMA,
) -> Awaitable[list[Row]]:
    """Publishes one event in the transaction that `connection` is in."""
    publisher = OutboxPublisher(connection, generation=generation, processing_class=processing_class, schema=schema)
    return publisher.publish(event)


def log_fields(event: OutboxEvent, generation: int, channel: str) -> dict[str, object]:
    """The fields of an event in log lines."""
    trace_id, span_id = event.span
    return {
        "generation": generation,
        "channel": channel,
        "trace_id": trace_id,
        "span_id": span_id,
        "event_id": event.event_id,
        "event_type": event.event_type,
        "source": event.source,
        "target": event.target,
        "workspace_id": event.workspace_id,
    }


def own_generation() -> int:
    """The generation of this deployment: TAPE_GENERATION or the file of TAPE_CONFIG."""
    return _generation_of(os.environ.get("TAPE_GENERATION"), os.environ.get("TAPE_CONFIG"))


@cache
def _generation_of(generation: str | None, config: str | None) -> int:
    environment = {"TAPE_GENERATION": generation, "TAPE_CONFIG": config}
    return Settings.read({name: value for name, value in environment.items() if value}).generation


def _end_span_after(span: Any, answer: Awaitable[list[Row]]) -> Awaitable[list[Row]]:
    if isinstance(answer, caller_connection.Ready):
        span.end()
        return answer
    return _awaited(span, answer)


async def _awaited(span: Any, answer: Awaitable[list[Row]]) -> list[Row]:
    try:
        return await answer
    finally:
        span.end()


def _traceparent() -> str | None:
    trace = current_trace()
    return None if trace is None else f"00-{trace.trace_id}-{trace.span_id}-01"

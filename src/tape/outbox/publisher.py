"""Publishing inside the caller's own transaction."""

import os
from collections.abc import Awaitable
from functools import cache
from typing import Any, Protocol

from tape.core.outbox import OutboxEvent, channel, check_generation, with_trace
from tape.settings import Settings
from tape.store import foreign
from tape.store.connection import Row
from tape.store.outbox.event import parameters
from tape.store.outbox.outbox import FILE
from tape.telemetry import current_trace, log, producer_span


class EventPublisher(Protocol):
    """Says an event so that it is known if and only if the business transaction commits."""

    def publish(self, event: OutboxEvent) -> Awaitable[object]: ...


class OutboxPublisher:
    """Publishes in the transaction that a connection is in."""

    def __init__(
        self,
        connection: object,
        *,
        generation: int | None = None,
        processing_class: str | None = None,
        schema: str = foreign.SCHEMA,
    ) -> None:
        self._connection = connection
        self._generation = own_generation() if generation is None else check_generation(generation)
        self._channel = channel(self._generation, processing_class)
        self._schema = schema

    def publish(self, event: OutboxEvent) -> Awaitable[list[Row]]:
        """Inserts the event. On an async connection the answer is awaited; on another one it is done already."""
        span = None if event.trace_context else producer_span(f"publish {event.event_type}")
        if span is None:
            return self._insert(with_trace(event, _traceparent()))
        context = span.get_span_context()
        said = with_trace(event, f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}")
        try:
            answer = self._insert(said)
        except BaseException:
            span.end()
            raise
        return _ended(span, answer)

    def _insert(self, said: OutboxEvent) -> Awaitable[list[Row]]:
        asked = parameters(said, self._generation, self._channel)
        answer = foreign.run(self._connection, FILE, "publish", asked, self._schema)
        log.info("outbox.published", **facts(said, self._generation, self._channel))
        return answer


def publish(
    event: OutboxEvent,
    connection: object,
    *,
    generation: int | None = None,
    processing_class: str | None = None,
    schema: str = foreign.SCHEMA,
) -> Awaitable[list[Row]]:
    """The same in one call."""
    publisher = OutboxPublisher(connection, generation=generation, processing_class=processing_class, schema=schema)
    return publisher.publish(event)


def facts(event: OutboxEvent, generation: int, channel: str) -> dict[str, object]:
    """What a log line says of an event, beside the time, the level and the name that every line has."""
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
    """The generation of this deployment, by its environment."""
    return _generation_of(os.environ.get("TAPE_GENERATION"), os.environ.get("TAPE_CONFIG"))


@cache
def _generation_of(generation: str | None, config: str | None) -> int:
    said = {"TAPE_GENERATION": generation, "TAPE_CONFIG": config}
    return Settings.read({name: value for name, value in said.items() if value}).generation


def _ended(span: Any, answer: Awaitable[list[Row]]) -> Awaitable[list[Row]]:
    """The answer, at which the span ends."""
    if isinstance(answer, foreign.Ready):
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

"""The relays to a journal or to a peer: handlers like any other, which repeat themselves without a trace."""

import re
from collections.abc import Awaitable, Callable
from datetime import UTC
from typing import Final

from tape.bridges.line import Line
from tape.bridges.message import Message, joined
from tape.bus.journal import Journal
from tape.core.codec import JsonValue
from tape.core.errors import KeyConflict
from tape.core.event import Event, Trace
from tape.core.outbox import OutboxEvent
from tape.outbox.failures import TerminalHandlerError
from tape.work.answers import Dead

MOST_NAME: Final = 128
_STRANGE: Final = re.compile("[^A-Za-z0-9._-]")


def run_of_source(event: OutboxEvent) -> str:
    """One run for each context that publishes."""
    return f"outbox.{_STRANGE.sub('-', event.source)}"[:MOST_NAME]


def journal_relay(
    journal: Journal, run_of: Callable[[OutboxEvent], str] = run_of_source
) -> Callable[[OutboxEvent], Awaitable[None]]:
    """A handler that appends each event once: its key is `outbox:<id>`, so a second time finds the first."""

    async def relay(event: OutboxEvent) -> None:
        try:
            await journal.append(entry_of(event, run_of(event)), key=f"outbox:{event.event_id}", open=True)
        except KeyConflict as error:
            raise TerminalHandlerError(str(error)) from error

    return relay


def line_relay(line: Line, topic: str) -> Callable[[OutboxEvent], Awaitable[None]]:
    """A handler that sends each event over a line in the envelope it has here; its key is the event's own."""

    async def relay(event: OutboxEvent) -> None:
        try:
            await line.send(topic, message_of(event))
        except Dead as error:
            raise TerminalHandlerError(error.reason) from error

    return relay


def message_of(event: OutboxEvent) -> Message:
    """The event's envelope, unchanged: whoever parses it need not know how it came."""
    return Message(
        key=event.idempotency_key,
        order=event.order_key or str(event.event_id),
        body=joined(envelope_of(event), "payload", event.payload_json).encode(),
        facts={"tape-type": event.event_type, "tape-run-id": run_of_source(event), **_trace(event)},
    )


def envelope_of(event: OutboxEvent) -> dict[str, JsonValue]:
    """What surrounds a payload, by the names that the envelope has."""
    return {
        "event_id": str(event.event_id),
        "event_type": event.event_type,
        "event_version": event.event_version,
        "occurred_at": event.occurred_at.astimezone(UTC).isoformat(),
        "source": event.source,
        "target": event.target,
        "workspace_id": None if event.workspace_id is None else str(event.workspace_id),
        "idempotency_key": event.idempotency_key,
        "trace_context": event.trace_context,
    }


def _trace(event: OutboxEvent) -> dict[str, str]:
    return {"traceparent": event.trace_context} if event.trace_context else {}


def entry_of(event: OutboxEvent, run_id: str) -> Event:
    """The event as the journal says it; what the journal has no column for is an attribute."""
    said = {
        "source": event.source,
        "target": event.target,
        "content_class": event.content_class,
        "workspace_id": None if event.workspace_id is None else str(event.workspace_id),
        "idempotency_key": event.idempotency_key,
        "order_key": event.order_key,
        "occurred_at": event.occurred_at.astimezone(UTC).isoformat(),
    }
    return Event(
        run_id=run_id,
        type=_STRANGE.sub("-", event.event_type)[:MOST_NAME],
        payload=dict(event.payload),
        schema_version=event.event_version,
        event_id=str(event.event_id),
        trace=Trace(*event.span) if any(event.span) else None,
        attributes={name: value for name, value in said.items() if value is not None},
    )

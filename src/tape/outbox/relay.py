"""Relays of an outbox to a journal or to a peer: handlers that may repeat an event without a second effect."""

import os
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC
from typing import Final

from tape.bridges.message import Message, with_raw_field
from tape.bridges.peer import PeerConnection
from tape.bridges.peers import peer_of_target
from tape.bus.journal import Journal
from tape.core.codec import JsonValue
from tape.core.errors import KeyConflict
from tape.core.event import Event, Trace
from tape.core.outbox import OutboxEvent
from tape.outbox.failures import TerminalHandlerError
from tape.outbox.listener import OutboxListener
from tape.settings import Settings
from tape.work.answers import Dead
from tape.work.shutdown import until_signal

MAX_NAME: Final = 128
_NOT_IN_NAMES: Final = re.compile("[^A-Za-z0-9._-]")

Relay = Callable[[OutboxEvent], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayOptions:
    """Which outbox and generation to relay to which target; progress is stored under the handler's name."""

    url: str
    target: str
    handler_name: str
    generation: int
    schema: str


async def relay_outbox(options: RelayOptions, once: bool = False) -> int:
    """Relays until a signal stops it, or with `once` the events that are due now; returns how many it relayed.

    Events with one order_key are relayed in their order.
    """
    peer, topic = peer_of_target(options.target, Settings.read(os.environ).connections)
    listener = OutboxListener(options.url, generation=options.generation, schema=options.schema)
    # No deadline for the attempt: it waits for an unavailable peer, and each send has its own deadline.
    listener.listen(handler_name=options.handler_name, handler=peer_relay(peer, topic), ordered=True, deadline=None)

    def stop() -> None:
        peer.stop()
        listener.stop()

    try:
        await until_signal(listener.run_once if once else listener.run, stop)
    finally:
        await peer.close()
    return listener.handled


def run_of_source(event: OutboxEvent) -> str:
    """One run per source."""
    return f"outbox.{_NOT_IN_NAMES.sub('-', event.source)}"[:MAX_NAME]


def journal_relay(journal: Journal, run_of: Callable[[OutboxEvent], str] = run_of_source) -> Relay:
    """A handler that appends each event once, under the key `outbox:<id>`, to the run that `run_of` returns."""

    async def relay(event: OutboxEvent) -> None:
        try:
            await journal.append(_entry_of(event, run_of(event)), key=f"outbox:{event.event_id}", open=True)
        except KeyConflict as error:
            raise TerminalHandlerError(str(error)) from error

    return relay


def peer_relay(peer: PeerConnection, topic: str) -> Relay:
    """A handler that sends each event to a peer in its own envelope, keyed by the event's idempotency key."""

    async def relay(event: OutboxEvent) -> None:
        try:
            await peer.send(topic, _message_of(event))
        except Dead as error:
            raise TerminalHandlerError(error.reason) from error

    return relay


def _message_of(event: OutboxEvent) -> Message:
    trace = {"traceparent": event.trace_context} if event.trace_context else {}
    return Message(
        key=event.idempotency_key,
        order=event.order_key or str(event.event_id),
        body=with_raw_field(_envelope_of(event), "payload", event.payload_json).encode(),
        extra_headers={"tape-type": event.event_type, "tape-run-id": run_of_source(event), **trace},
    )


def _envelope_of(event: OutboxEvent) -> dict[str, JsonValue]:
    """The fields of `OutboxEvent` around the payload, under their own names."""
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


def _entry_of(event: OutboxEvent, run_id: str) -> Event:
    """The event for the journal; fields for which the journal has no column become attributes."""
    attributes = {
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
        type=_NOT_IN_NAMES.sub("-", event.event_type)[:MAX_NAME],
        payload=dict(event.payload),
        schema_version=event.event_version,
        event_id=str(event.event_id),
        trace=Trace(*event.span) if any(event.span) else None,
        attributes={name: value for name, value in attributes.items() if value is not None},
    )

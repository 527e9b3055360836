"""The fourth part of the demo: an event in another program's transaction, and one that is rolled back."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Final, NamedTuple

import anyio

from tape.bus.journal import Journal
from tape.cli import output
from tape.cli.demo.report import Check
from tape.core.outbox import OutboxEvent

SOURCE: Final = "billing"
HANDLER: Final = "demo.relay"
DEADLINE_S: Final = 20.0


class OutboxOutcome(NamedTuple):
    """The checks, and the event they are about."""

    checks: tuple[Check, ...]
    event_id: str


async def run(journal: Journal, url: str, file: str) -> OutboxOutcome:
    """Publishes in a transaction that commits and in one that rolls back, and relays the outbox to the journal."""
    from tape.outbox import OutboxListener, migrate
    from tape.outbox.relay import journal_relay, run_of_source

    await migrate(url)
    kept, undone = (_invoice(state) for state in ("sent", "withdrawn"))
    await _publish(file, kept, is_kept=True)
    await _publish(file, undone, is_kept=False)
    listener = OutboxListener(url)
    listener.listen(handler_name=HANDLER, handler=journal_relay(journal))
    with anyio.fail_after(DEADLINE_S):
        await listener.run_once()

    run_id = run_of_source(kept)
    payloads = [entry.payload async for entry in journal.stream(run_id=run_id, follow=False)]
    seen = [event for event in (kept, undone) for payload in payloads if _is_about(payload, event)]
    status = await _status(url, kept)
    is_kept = seen == [kept] and status == "delivered"
    finding = f"the committed invoice is {status} and in the journal once; of the one that was undone nobody knows"
    return OutboxOutcome(
        (Check("outbox", is_kept, finding if is_kept else f"{status}, seen {len(seen)} times"),), str(kept.event_id)
    )


def write(outbox: OutboxOutcome) -> None:
    output.write()
    output.write(output.paint("An invoice is sent in a transaction, and its event with it; another is undone:", "bold"))
    output.table([(output.paint("outbox", "bold"), f"event {outbox.event_id}")])


def _invoice(state: str) -> OutboxEvent:
    return OutboxEvent(
        event_type=f"invoice.{state}", source=SOURCE, payload={"invoice": f"2026-001-{state}", "total": 120}
    )


async def _publish(file: str, event: OutboxEvent, *, is_kept: bool) -> None:
    """As an application does it: on its own connection, together with its other writes."""
    from tape.outbox import publish

    with closing(sqlite3.connect(file, 10)) as connection:
        await publish(event, connection)
        (connection.commit if is_kept else connection.rollback)()


async def _status(url: str, event: OutboxEvent) -> str:
    from tape.outbox.database import open_table

    async with open_table(url) as table:
        found = await table.find(event.event_id)
    return "missing" if found is None else found.row.status


def _is_about(payload: object, event: OutboxEvent) -> bool:
    return isinstance(payload, dict) and str(event.payload["invoice"]) in str(payload)

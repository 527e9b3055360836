"""The relay from an outbox to the journal."""

from pathlib import Path

from tape.compose import open_journal
from tape.outbox.relay import journal_relay
from tests.outbox.business_database import BusinessDatabase, make_event


async def test_an_event_is_in_the_journal_once_however_often_it_is_relayed(
    business: BusinessDatabase, tmp_path: Path
) -> None:
    trace_id, span_id = "a" * 32, "b" * 16
    event = make_event(1, event_version=3, trace_context=f"00-{trace_id}-{span_id}-01")
    await business.publish(event, make_event(2))

    async with open_journal(f"sqlite:///{tmp_path / 'journal.db'}") as journal:
        relay = journal_relay(journal)
        await relay(event)
        async with business.listening({"tape.relay": relay}):
            await business.wait_until("delivered", 2)
        entries = [entry async for entry in journal.stream(run_id="outbox.orders", follow=False)]

    assert [entry.payload for entry in entries] == [{"n": 1}, {"n": 2}]
    assert (entries[0].type, entries[0].schema_version, entries[0].event_id) == (
        "orders.placed", 3, str(event.event_id),
    )  # fmt: skip
    assert (entries[0].trace_id, entries[0].span_id, entries[0].cause) == (trace_id, span_id, None)
    assert entries[0].attributes["idempotency_key"] == event.idempotency_key

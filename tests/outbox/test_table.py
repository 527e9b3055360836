"""Dead letters: looked at, replayed one by one or together, and forgotten in time."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import anyio
import pytest

from tape.core.errors import UsageError
from tape.core.outbox import OutboxRetention
from tape.outbox import TerminalHandlerError, polling
from tape.outbox.database import open_outbox
from tape.store.outbox.table import OutboxStats, OutboxTable, RowFilter
from tests.outbox.places import Place, Seen, said
from tests.patience import PATIENCE_S


@pytest.fixture
async def table(place: Place) -> AsyncIterator[OutboxTable]:
    async with open_outbox(place.url) as database:
        yield OutboxTable(database)


def broken() -> Seen:
    return Seen(lambda _: TerminalHandlerError("no"))


async def test_a_replayed_row_begins_a_new_cycle_and_keeps_its_key_and_its_history(
    place: Place, table: OutboxTable
) -> None:
    event = said(1, idempotency_key="order-1")
    await place.said(event)
    async with place.listening({"test.broken": broken()}):
        await place.wait_until("failed", 1)

    assert await table.replay([event.event_id], 5, "me") == [event.event_id]

    (record,) = await table.listed()
    (cycle,) = record.failure_history
    assert (record.status, record.attempts, record.last_error, record.first_failed_at_ms) == ("pending", 0, None, None)
    assert (record.generation, record.channel, record.event.idempotency_key) == (5, "outbox_gen_5", "order-1")
    assert (cycle["attempts"], cycle["last_error"], cycle["replayed_by"]) == (1, "TerminalHandlerError: no", "me")


async def test_a_replayed_row_is_handled_by_those_who_had_not(place: Place, table: OutboxTable) -> None:
    event, good = said(1), Seen()
    await place.said(event)
    async with place.listening({"test.good": good, "test.mended": broken()}):
        await place.wait_until("failed", 1)
    again, mended = Seen(), Seen()

    await table.replay([event.event_id], 0, "me")
    async with place.listening({"test.good": again, "test.mended": mended}):
        await place.wait_until("delivered", 1)

    assert (good.numbers, again.numbers, mended.numbers) == ([1], [], [1])


async def test_an_event_that_was_handled_is_not_handled_again_by_a_replay(place: Place, table: OutboxTable) -> None:
    event, seen = said(1), Seen()
    await place.said(event)
    async with place.listening({"test.seen": seen}):
        await place.wait_until("delivered", 1)
        assert await table.replay([event.event_id], 0, "me") == [event.event_id]
        await place.wait_until("delivered", 1)

    assert seen.numbers == [1]


async def test_what_has_not_ended_cannot_be_replayed(place: Place, table: OutboxTable) -> None:
    event = said(1)
    await place.said(event)

    assert await table.replay([event.event_id], 0, "me") == []


async def test_a_replay_wakes_a_listener(place: Place, table: OutboxTable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(polling, "POLL_S", 10 * PATIENCE_S)
    mended = Seen()
    await place.said(said(1))
    async with place.listening({"test.mended": broken()}):
        await place.wait_until("failed", 1)

    async with place.listening({"test.mended": mended}):
        assert await table.replay_failed(RowFilter(), 0, "me") == 1
        await place.wait_until("delivered", 1)

    assert mended.numbers == [1]


async def test_rows_are_replayed_by_what_they_are(place: Place, table: OutboxTable) -> None:
    await place.said(said(1), said(2, event_type="orders.paid"), said(3, event_type="orders.paid"))
    async with place.listening({"test.broken": broken()}):
        await place.wait_until("failed", 3)

    assert await table.replay_failed(RowFilter(event_type="orders.paid"), 0, "me") == 2
    assert await table.replay_failed(RowFilter(handler_name="test.other"), 0, "me") == 0
    assert await table.replay_failed(RowFilter(handler_name="test.broken"), 0, "me") == 1


async def test_a_row_shows_where_each_delivery_stands(place: Place, table: OutboxTable) -> None:
    event = said(1)
    await place.said(event)
    async with place.listening({"test.good": Seen(), "test.broken": broken()}):
        await place.wait_until("failed", 1)

    found = await table.find(event.event_id)

    assert found is not None and found[0].event == event
    assert [(state.handler_name, state.status) for state in found[1]] == [
        ("test.broken", "failed"),
        ("test.good", "delivered"),
    ]


async def test_rows_are_listed_by_status(place: Place, table: OutboxTable) -> None:
    await place.said(said(1), said(2))
    seen = Seen(lambda event: TerminalHandlerError("no") if event.payload["n"] == 1 else None)
    async with place.listening({"test.seen": seen}):
        await place.wait_until("failed", 1)
        await place.wait_until("delivered", 1)

    assert [record.event.payload for record in await table.listed(RowFilter(status="failed"))] == [{"n": 1}]
    assert (await table.stats())[:3] == (0, 0, 1)


NOW = timedelta(0)
SOON = OutboxRetention(active=NOW, grace=NOW, handled_active=timedelta(milliseconds=1), handled_grace=NOW)


async def test_what_ended_is_marked_and_then_deleted_and_what_was_handled_is_forgotten(
    place: Place, table: OutboxTable
) -> None:
    await place.said(said(1))
    async with place.listening({"test.seen": Seen()}):
        await place.wait_until("delivered", 1)

    first = await table.retain(SOON)
    second = await table.retain(SOON)

    assert (first.marked, first.deleted, second.marked, second.deleted) == (1, 0, 0, 1)
    assert await place.states() == [] and first.forgotten + second.forgotten == 1
    assert await place.rows(f"SELECT * FROM {place.outbox}_deliveries") == []


async def test_what_has_not_been_handled_is_never_forgotten_by_age(place: Place, table: OutboxTable) -> None:
    await place.said(said(1))

    await table.retain(SOON)
    kept = await table.retain(SOON)

    assert kept.deleted == 0 and await place.states() == [("pending",)]


def test_what_was_handled_is_remembered_for_longer_than_its_row_can_come_again() -> None:
    kept = OutboxRetention()

    assert (kept.active.days, kept.grace.days, kept.handled_active.days, kept.handled_grace.days) == (45, 7, 60, 7)
    with pytest.raises(UsageError, match="52 days"):
        OutboxRetention(handled_active=timedelta(days=52))


async def test_a_listener_with_a_retention_forgets_meanwhile(place: Place) -> None:
    await place.said(said(1))
    async with place.listening({"test.seen": Seen()}):
        await place.wait_until("delivered", 1)

    async with place.listening({"test.seen": Seen()}, retention=SOON):
        with anyio.fail_after(PATIENCE_S):
            while await place.states("deleted_at IS NULL") == [(True,)]:  # noqa: ASYNC110 - nobody is told of it
                await anyio.sleep(0.01)


@pytest.mark.parametrize(
    ("grown", "count"),
    [
        ({}, 0),
        ({"rows": 5_000_001}, 1),
        ({"rows": 20_000_001}, 2),
        ({"ack_p99_ms": 501.0}, 1),
        ({"notify_queue_usage": 0.25}, 1),
    ],
    ids=["small", "5M", "20M", "slow", "queue"],
)
def test_an_outbox_says_when_it_has_outgrown_itself(grown: dict[str, Any], count: int) -> None:
    small = OutboxStats(0, 0, 0, 0, 5_000_000, 1.0, 500.0, 0.24)

    assert len(small._replace(**grown).advice) == count

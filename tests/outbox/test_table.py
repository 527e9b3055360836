"""Rows of the outbox: listed, replayed, handed over, and deleted by the retention."""

from collections.abc import AsyncIterator
from dataclasses import fields, replace
from datetime import timedelta
from typing import Any

import anyio
import pytest

from tape.core.errors import UsageError
from tape.core.outbox import OutboxRetention, OutboxStatus
from tape.core.outbox_record import OutboxStats
from tape.outbox import TerminalHandlerError, polling
from tape.outbox.database import open_outbox
from tape.store.outbox.table import OutboxTable, RowFilter
from tests.deadlines import DEADLINE_S
from tests.outbox.business_database import BusinessDatabase, RecordingHandler, make_event, retain_until_deleted


@pytest.fixture
async def table(business: BusinessDatabase) -> AsyncIterator[OutboxTable]:
    async with open_outbox(business.url) as database:
        yield OutboxTable(database)


def broken() -> RecordingHandler:
    return RecordingHandler(lambda _: TerminalHandlerError("no"))


async def test_rows_are_listed_page_by_page_and_filtered_before_they_are_counted(
    business: BusinessDatabase, table: OutboxTable
) -> None:
    dead, alive = make_event(1), [make_event(number) for number in (2, 3, 4, 5)]
    await business.publish(dead)
    async with business.listening({"test.broken": broken()}):
        await business.wait_until("failed", 1)
    await business.publish(*alive)

    first = await table.listed(limit=2)
    rest = await table.listed(limit=9, before=first[-1].position)
    (failed,) = await table.listed(RowFilter(status=OutboxStatus.FAILED), limit=1)

    assert [record.payload["n"] for record in (*first, *rest)] == [5, 4, 3, 2, 1]
    assert failed.event_id == dead.event_id
    assert await table.listed(RowFilter(status=OutboxStatus.FAILED), before=failed.position) == []


async def test_a_replayed_row_begins_a_new_cycle_and_keeps_its_key_and_its_history(
    business: BusinessDatabase, table: OutboxTable
) -> None:
    event = make_event(1, idempotency_key="order-1")
    await business.publish(event)
    async with business.listening({"test.broken": broken()}):
        await business.wait_until("failed", 1)

    assert await table.replay([event.event_id], 5, "me") == [event.event_id]

    (record,) = await table.listed()
    (cycle,) = record.failure_history
    assert (record.status, record.attempts, record.last_error, record.first_failed_at_ms) == ("pending", 0, None, None)
    assert (record.generation, record.channel, record.idempotency_key) == (5, "outbox_gen_5", "order-1")
    assert (cycle["attempts"], cycle["last_error"], cycle["replayed_by"]) == (1, "TerminalHandlerError: no", "me")


async def test_a_replayed_row_is_handled_by_handlers_that_had_not_handled_it(
    business: BusinessDatabase, table: OutboxTable
) -> None:
    event, good = make_event(1), RecordingHandler()
    await business.publish(event)
    async with business.listening({"test.good": good, "test.mended": broken()}):
        await business.wait_until("failed", 1)
    again, mended = RecordingHandler(), RecordingHandler()

    await table.replay([event.event_id], 0, "me")
    async with business.listening({"test.good": again, "test.mended": mended}):
        await business.wait_until("delivered", 1)

    assert (good.numbers, again.numbers, mended.numbers) == ([1], [], [1])


async def test_an_event_that_was_handled_is_not_handled_again_by_a_replay(
    business: BusinessDatabase, table: OutboxTable
) -> None:
    event, seen = make_event(1), RecordingHandler()
    await business.publish(event)
    async with business.listening({"test.seen": seen}):
        await business.wait_until("delivered", 1)
        assert await table.replay([event.event_id], 0, "me") == [event.event_id]
        await business.wait_until("delivered", 1)

    assert seen.numbers == [1]


async def test_what_has_not_ended_cannot_be_replayed(business: BusinessDatabase, table: OutboxTable) -> None:
    event = make_event(1)
    await business.publish(event)

    assert await table.replay([event.event_id], 0, "me") == []


async def test_a_replay_wakes_a_listener(
    business: BusinessDatabase, table: OutboxTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(polling, "POLL_S", 10 * DEADLINE_S)
    mended = RecordingHandler()
    await business.publish(make_event(1))
    async with business.listening({"test.mended": broken()}):
        await business.wait_until("failed", 1)

    async with business.listening({"test.mended": mended}):
        assert await table.replay_failed(RowFilter(), 0, "me") == 1
        await business.wait_until("delivered", 1)

    assert mended.numbers == [1]


async def test_rows_are_replayed_by_type_and_handler(business: BusinessDatabase, table: OutboxTable) -> None:
    await business.publish(
        make_event(1), make_event(2, event_type="orders.paid"), make_event(3, event_type="orders.paid")
    )
    async with business.listening({"test.broken": broken()}):
        await business.wait_until("failed", 3)

    assert await table.replay_failed(RowFilter(event_type="orders.paid"), 0, "me") == 2
    assert await table.replay_failed(RowFilter(handler_name="test.other"), 0, "me") == 0
    assert await table.replay_failed(RowFilter(handler_name="test.broken"), 0, "me") == 1


async def test_a_row_shows_the_state_of_each_delivery(business: BusinessDatabase, table: OutboxTable) -> None:
    context = f"00-{1:032x}-{1:016x}-01"  # without one, the tracer that another test has installed adds its own
    event = replace(make_event(1), trace_context=context)
    await business.publish(event)
    async with business.listening({"test.good": RecordingHandler(), "test.broken": broken()}):
        await business.wait_until("failed", 1)

    found = await table.find(event.event_id)

    assert found is not None
    assert all(getattr(found.row, each.name) == getattr(event, each.name) for each in fields(event))
    assert [(state.handler_name, state.status) for state in found.deliveries] == [
        ("test.broken", "failed"),
        ("test.good", "delivered"),
    ]


async def test_rows_are_listed_by_status(business: BusinessDatabase, table: OutboxTable) -> None:
    await business.publish(make_event(1), make_event(2))
    seen = RecordingHandler(lambda event: TerminalHandlerError("no") if event.payload["n"] == 1 else None)
    async with business.listening({"test.seen": seen}):
        await business.wait_until("failed", 1)
        await business.wait_until("delivered", 1)

    assert [record.payload for record in await table.listed(RowFilter(status=OutboxStatus.FAILED))] == [{"n": 1}]
    stats = await table.stats()
    assert (stats.pending, stats.in_flight, stats.failed) == (0, 0, 1)


NOW = timedelta(0)
SOON = OutboxRetention(active=NOW, grace=NOW, handled_active=timedelta(milliseconds=1), handled_grace=NOW)


async def test_ended_rows_are_marked_then_deleted_and_handled_keys_are_forgotten(
    business: BusinessDatabase, table: OutboxTable
) -> None:
    await business.publish(make_event(1))
    async with business.listening({"test.seen": RecordingHandler()}):
        await business.wait_until("delivered", 1)

    first, *more = await retain_until_deleted(lambda: table.retain(SOON))

    assert (first.marked, first.deleted, more[-1].marked, more[-1].deleted) == (1, 0, 0, 1)
    assert await business.states() == [] and sum(each.forgotten for each in (first, *more)) == 1
    assert await business.rows(f"SELECT * FROM {business.outbox}_deliveries") == []


async def test_unhandled_rows_are_never_deleted_by_age(business: BusinessDatabase, table: OutboxTable) -> None:
    seen = RecordingHandler()
    await business.publish(make_event(1))

    kept = [await table.retain(SOON) for _ in range(2)]

    assert {(each.marked, each.deleted) for each in kept} == {(0, 0)} and await business.states() == [("pending",)]
    async with business.listening({"test.seen": seen}):
        await seen.wait_for(1)


def test_handled_keys_are_kept_longer_than_rows() -> None:
    kept = OutboxRetention()

    assert (kept.active.days, kept.grace.days, kept.handled_active.days, kept.handled_grace.days) == (45, 7, 60, 7)
    with pytest.raises(UsageError, match="52 days"):
        OutboxRetention(handled_active=timedelta(days=52))


async def test_a_listener_with_a_retention_deletes_old_rows(business: BusinessDatabase) -> None:
    await business.publish(make_event(1))
    async with business.listening({"test.seen": RecordingHandler()}):
        await business.wait_until("delivered", 1)

    async with business.listening({"test.seen": RecordingHandler()}, retention=SOON):
        with anyio.fail_after(DEADLINE_S):
            while await business.states("deleted_at IS NULL") == [(True,)]:  # noqa: ASYNC110 - there is no event for it
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
def test_a_large_outbox_has_advice(grown: dict[str, Any], count: int) -> None:
    small = OutboxStats(
        pending=0, in_flight=0, failed=0, oldest_ms=0, rows=5_000_000, ack_p50_ms=1.0, ack_p99_ms=500.0,
        notify_queue_usage=0.24,
    )  # fmt: skip

    assert len(replace(small, **grown).advice) == count

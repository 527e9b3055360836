"""The operations of the outbox, in this process and over gRPC."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import fields
from datetime import timedelta
from uuid import uuid4

import pytest

from tape.compose import ledgers_of, open_store, run_journal
from tape.core.errors import InvalidCursor, NotFound, UsageError
from tape.core.outbox import OutboxRetention, OutboxStatus
from tape.operations.outbox import PartitionOutbox, ReplayOutbox
from tape.outbox import TerminalHandlerError
from tape.sdk.nouns.node import AsyncNode
from tests.contract.serving import reached
from tests.outbox.business_database import BusinessDatabase, RecordingHandler, make_event, retain_until_deleted

NOW = timedelta(0)
SOON = OutboxRetention(active=NOW, grace=NOW, handled_active=timedelta(milliseconds=1), handled_grace=NOW)


@pytest.fixture(params=["embedded", "grpc"])
async def node(request: pytest.FixtureRequest, business: BusinessDatabase) -> AsyncIterator[AsyncNode]:
    async with open_store("memory://") as store, run_journal(store) as journal:
        if request.param == "embedded":
            yield AsyncNode(ledgers_of(store, journal, business.url))
            return
        async with reached(store, journal, business.url) as far:
            yield far


async def handle(business: BusinessDatabase, *, failing: int, delivered: int = 0) -> None:
    """Handles all rows; those with a number up to `failing` fail."""
    broken = RecordingHandler(lambda event: TerminalHandlerError("no") if event.payload["n"] <= failing else None)  # type: ignore[operator]
    async with business.listening({"test.seen": broken}):
        await business.wait_until("failed", failing)
        await business.wait_until("delivered", delivered)


async def test_rows_are_listed_by_status_type_and_generation_in_pages(
    node: AsyncNode, business: BusinessDatabase
) -> None:
    await business.publish(make_event(1), make_event(2))
    await handle(business, failing=1, delivered=1)
    await business.publish(make_event(3, event_type="orders.paid"), generation=7)

    first = await node.outbox.list(limit=2)
    last = await node.outbox.list(limit=2, cursor=first.next_cursor)
    (failed,) = (await node.outbox.list(OutboxStatus.FAILED)).rows
    (paid,) = (await node.outbox.list(event_type="orders.paid")).rows

    assert [row.payload["n"] for row in (*first.rows, *last.rows)] == [3, 2, 1] and last.next_cursor == ""
    assert (failed.payload, failed.status, failed.last_error) == ({"n": 1}, "failed", "TerminalHandlerError: no")
    assert [row.event_id for row in (await node.outbox.list(generation=7)).rows] == [paid.event_id]
    with pytest.raises(InvalidCursor):
        await node.outbox.list(OutboxStatus.FAILED, cursor=first.next_cursor)


async def test_a_row_is_shown_as_it_was_published_with_its_deliveries(
    node: AsyncNode, business: BusinessDatabase
) -> None:
    context = f"00-{1:032x}-{1:016x}-01"
    event = make_event(1, payload={"n": 1, "deep": {"ä": [1, None]}}, workspace_id=uuid4(), trace_context=context)
    await business.publish(event)
    await handle(business, failing=1)

    detail = await node.outbox.get(event.event_id)

    assert [getattr(detail.row, each.name) for each in fields(event)] == [
        getattr(event, each.name) for each in fields(event)
    ]
    assert [(each.handler_name, each.status) for each in detail.deliveries] == [("test.seen", "failed")]
    with pytest.raises(NotFound):
        await node.outbox.get(uuid4())


async def test_dead_letters_are_replayed_and_handed_over_to_a_generation(
    node: AsyncNode, business: BusinessDatabase
) -> None:
    event = make_event(1)
    await business.publish(event)
    await handle(business, failing=1)

    none = await node.outbox.replay(handler_name="test.other")
    other = await node.outbox.replay(from_generation=3)
    replayed = await node.outbox.replay([event.event_id], generation=2, replayed_by="ann")
    row = (await node.outbox.get(event.event_id)).row

    assert (none, other, replayed, row.generation, row.status) == (0, 0, 1, 2, "pending")
    assert [each["replayed_by"] for each in row.failure_history] == ["ann"]
    assert await node.outbox.hand_over(2, 0) == 1
    assert (await node.outbox.get(event.event_id)).row.generation == 0


async def test_the_statistics_count_rows_and_the_retention_deletes_them(
    node: AsyncNode, business: BusinessDatabase
) -> None:
    await business.publish(make_event(1), make_event(2))
    await handle(business, failing=1, delivered=1)

    stats = await node.outbox.stats()
    kept = await node.outbox.retain()
    marked, *_, deleted = await retain_until_deleted(lambda: node.outbox.retain(SOON))

    assert (stats.pending, stats.in_flight, stats.failed) == (0, 0, 1)
    assert (kept.marked, marked.marked, deleted.deleted) == (0, 2, 2)


async def test_large_rows_come_page_by_page(node: AsyncNode, business: BusinessDatabase) -> None:
    await business.publish(*(make_event(n, payload={"n": n, "text": "x" * 900_000}) for n in range(6)))

    first = await node.outbox.list()
    second = await node.outbox.list(cursor=first.next_cursor)

    assert [row.payload["n"] for row in (*first.rows, *second.rows)] == [5, 4, 3, 2, 1, 0]
    assert 0 < len(second.rows) < len(first.rows) and second.next_cursor == ""


async def test_what_cannot_be_meant_is_refused(node: AsyncNode, business: BusinessDatabase) -> None:
    with pytest.raises(UsageError, match="not both"):
        ReplayOutbox(event_ids=(uuid4(),), event_type="orders.placed")
    with pytest.raises(UsageError, match="handled twice"):
        await node.outbox.retain(OutboxRetention(handled_active=timedelta(days=52)))


async def test_a_node_without_an_outbox_says_how_to_make_one() -> None:
    async with open_store("memory://") as store, run_journal(store) as journal:
        with pytest.raises(NotFound, match="TAPE_OUTBOX_URL"):
            await AsyncNode(ledgers_of(store, journal)).outbox.stats()


async def test_a_partition_is_made_at_the_database(sqlite: BusinessDatabase) -> None:
    async with open_store("memory://") as store, run_journal(store) as journal, AsyncExitStack() as stack:
        far = await stack.enter_async_context(reached(store, journal, sqlite.url))
        with pytest.raises(UsageError, match="not on gRPC"):
            await far.call(PartitionOutbox())

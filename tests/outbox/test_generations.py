"""Generations of a deployment: isolated, and handed over when retired."""

import pytest

from tape.core.errors import UsageError
from tape.outbox import DEFAULT_RETRY_POLICY, OutboxListener, publish
from tape.outbox.database import open_outbox
from tape.store.outbox.table import OutboxTable
from tests.conftest import Scale
from tests.outbox.business_database import BusinessDatabase, RecordingHandler, insert_handled, make_event

SLOW = {"retry_policy": DEFAULT_RETRY_POLICY}


async def test_p15_two_generations_live_together_and_never_cross(business: BusinessDatabase, scale: Scale) -> None:
    count = scale(100)
    old, new = RecordingHandler(), RecordingHandler()

    async with (
        business.listening({"test.seen": old}, generation=1),
        business.listening({"test.seen": new}, generation=2),
    ):
        await business.publish(*(make_event(n) for n in range(0, count, 2)), generation=1)
        await business.publish(*(make_event(n) for n in range(1, count, 2)), generation=2)
        await business.wait_until("delivered", count)

    assert sorted(old.numbers) == list(range(0, count, 2))
    assert sorted(new.numbers) == list(range(1, count, 2))


async def test_p15_a_row_of_another_generation_stays_where_it_is(business: BusinessDatabase) -> None:
    seen = RecordingHandler()
    await business.publish(make_event(1), generation=1)

    async with business.listening({"test.seen": seen}, generation=2):
        await business.publish(make_event(2), generation=2)
        await business.wait_until("delivered", 1)

    assert seen.numbers == [2] and await business.states() == [("pending",), ("delivered",)]


async def test_p15_a_row_of_the_default_channel_is_for_its_own_generation(business: BusinessDatabase) -> None:
    seen = RecordingHandler()
    for generation in (1, 2):
        await business.publish(make_event(generation), generation=generation)
    await business.run(f"UPDATE {business.outbox} SET channel = 'outbox_default'")

    async with business.listening({"test.seen": seen}, generation=2):
        await seen.wait_for(1)
        assert seen.numbers == [2]  # the older row would come first
        await business.wait_until("delivered", 1)

    assert seen.numbers == [2] and await business.states() == [("pending",), ("delivered",)]


async def test_p15_a_worker_cannot_listen_on_the_channel_of_another_generation(business: BusinessDatabase) -> None:
    listener = OutboxListener(business.url, generation=2)

    with pytest.raises(UsageError, match="outbox_gen_2"):
        listener.listen(channel="outbox_gen_1", handler_name="test.seen", handler=RecordingHandler())


async def test_a_handler_of_a_class_gets_that_class_only(business: BusinessDatabase) -> None:
    hot, plain = RecordingHandler(), RecordingHandler()
    async with business.connected() as connection:
        await publish(make_event(1), connection, processing_class="hot")
        await publish(make_event(2), connection)

    listener = {"channel": "outbox_gen_0_hot"}
    async with business.listening({"test.hot": hot}, listen=listener), business.listening({"test.plain": plain}):
        await business.wait_until("delivered", 2)

    assert (hot.numbers, plain.numbers) == ([1], [2])


async def test_a_retired_generation_is_handed_over_and_what_it_handled_is_not_handled_again(
    business: BusinessDatabase,
) -> None:
    first = RecordingHandler(lambda event: ConnectionError("retired") if event.payload["n"] == 1 else None)
    second = RecordingHandler()
    await business.publish(make_event(0), make_event(1), generation=1)
    async with business.listening({"test.seen": first, "test.note": insert_handled}, generation=1, listen=SLOW):
        await first.wait_for(2)
        await business.wait_until("delivered", 1)

    async with open_outbox(business.url) as database:
        handed_over = await OutboxTable(database).hand_over(1, 2)
    async with business.listening({"test.seen": second, "test.note": insert_handled}, generation=2):
        await business.wait_until("delivered", 2)

    assert (handed_over, second.numbers) == (1, [1])
    assert await business.rows("SELECT n FROM orders WHERE note = 'handled' ORDER BY n") == [(0,), (1,)]
    assert (await business.states("generation, channel"))[1] == (2, "outbox_gen_2")

"""Deliveries: an event is handled if and only if its transaction committed, and its effects apply once."""

from typing import Any

import anyio
import pytest

from tape.outbox import OutboxEvent, TerminalHandlerError
from tests.outbox.business_database import BusinessDatabase, RecordingHandler, insert_handled, make_event, number, rows

EFFECTS = "SELECT n FROM orders WHERE note = 'handled' ORDER BY n"


async def test_p14_an_event_is_handled_if_and_only_if_its_transaction_committed(business: BusinessDatabase) -> None:
    seen = RecordingHandler()

    async with business.listening({"test.seen": seen}):
        await business.publish(make_event(1), commits=False)
        await business.publish(make_event(2), make_event(3))
        await business.wait_until("delivered", 2)

    assert sorted(seen.numbers) == [2, 3]
    assert await business.rows("SELECT n FROM orders ORDER BY n") == [(2,), (3,)]


async def test_p14_a_handlers_database_effect_applies_once_for_a_row_delivered_three_times_at_once(
    business: BusinessDatabase,
) -> None:
    event = make_event(1, idempotency_key="the-same")
    await business.publish(event, make_event(1, idempotency_key="the-same"), make_event(1, idempotency_key="the-same"))

    async with business.listening({"test.note": insert_handled}):
        await business.wait_until("delivered", 3)

    assert await business.rows(EFFECTS) == [(1,)]


async def test_an_effect_of_an_attempt_that_failed_is_undone(business: BusinessDatabase) -> None:
    attempts: list[int] = []

    async def fail_first(event: OutboxEvent, connection: Any) -> None:
        await insert_handled(event, connection)
        attempts.append(1)
        if len(attempts) < 3:
            raise ConnectionError("not yet")

    await business.publish(make_event(1))
    async with business.listening({"test.flaky": fail_first}):
        await business.wait_until("delivered", 1)

    assert await business.rows(EFFECTS) == [(1,)]
    assert await business.states("status, attempts") == [("delivered", 3)]


async def test_p12_a_delivery_whose_commit_is_refused_ends(postgres: BusinessDatabase) -> None:
    async def refused(event: OutboxEvent, connection: Any) -> None:
        await connection.execute("INSERT INTO distinct_numbers VALUES (1), (1)")

    await postgres.run("CREATE TABLE distinct_numbers (n bigint UNIQUE DEFERRABLE INITIALLY DEFERRED)")
    await postgres.publish(make_event(1))
    async with postgres.listening({"test.refused": refused}):
        await postgres.wait_until("failed", 1)

    assert await postgres.rows("SELECT n FROM distinct_numbers") == []


async def test_an_event_published_before_the_listener_started_is_handled(business: BusinessDatabase) -> None:
    seen = RecordingHandler()
    await business.publish(make_event(1))

    async with business.listening({"test.seen": seen}):
        await seen.wait_for(1)

    assert seen.numbers == [1]


async def test_the_handled_event_equals_the_published_one(business: BusinessDatabase) -> None:
    seen = RecordingHandler()
    event = make_event(
        1, target="worlds", trace_context=f"00-{'a' * 32}-{'b' * 16}-01", payload={"n": 1, "é": [1.5, None]}
    )

    await business.publish(event)
    async with business.listening({"test.seen": seen}, listen={"target": "worlds"}):
        await seen.wait_for(1)

    assert seen.events == [event]


async def test_every_handler_has_its_own_delivery_and_a_failing_one_affects_no_other(
    business: BusinessDatabase,
) -> None:
    good, other, broken = RecordingHandler(), RecordingHandler(), RecordingHandler(lambda _: TerminalHandlerError("no"))
    handlers = {"test.good": good, "test.broken": broken, "test.other": other}

    await business.publish(make_event(1))
    async with business.listening(handlers):
        await business.wait_until("failed", 1)

    table = f"{business.outbox}_deliveries"
    assert await business.rows(f"SELECT handler_name, status FROM {table} ORDER BY 1") == [
        ("test.broken", "failed"),
        ("test.good", "delivered"),
        ("test.other", "delivered"),
    ]


async def test_a_late_handler_that_begins_with_all_gets_every_row_of_its_generation(business: BusinessDatabase) -> None:
    first, late = RecordingHandler(), RecordingHandler()
    await business.publish(make_event(1))
    async with business.listening({"test.first": first}):
        await business.wait_until("delivered", 1)

    async with business.listening({"test.late": late}, listen={"begin": "all"}):
        await late.wait_for(1)
        await business.wait_until("delivered", 1)

    assert first.numbers == late.numbers == [1]


async def test_a_late_handler_begins_with_what_has_not_ended(business: BusinessDatabase) -> None:
    late = RecordingHandler()
    await business.publish(make_event(1))
    async with business.listening({"test.first": RecordingHandler()}):
        await business.wait_until("delivered", 1)

    async with business.listening({"test.late": late}):
        await business.publish(make_event(2))
        await late.wait_for(1)

    assert late.numbers == [2]


async def test_an_event_with_a_target_reaches_that_target_only_and_one_without_reaches_all(
    business: BusinessDatabase,
) -> None:
    seen = RecordingHandler()
    await business.publish(make_event(1, target="worlds"), make_event(2, target="platform"), make_event(3))

    async with business.listening({"platform.seen": seen}, listen={"target": "platform"}):
        await business.wait_until("delivered", 2)

    assert sorted(seen.numbers) == [2, 3]
    assert await business.states() == [("pending",), ("delivered",), ("delivered",)]


async def test_events_of_one_key_are_handled_in_order_despite_a_retry(business: BusinessDatabase) -> None:
    failed: set[int] = set()

    def fail_once(event: OutboxEvent) -> object:
        n = number(event)
        if n % 3 == 0 and n not in failed:
            failed.add(n)
            return ConnectionError("once")
        return None

    seen = RecordingHandler(fail_once)
    await business.publish(*(make_event(n, order_key=f"k{n % 2}") for n in range(12)))
    async with business.listening({"test.ordered": seen}, listen={"ordered": True}):
        await business.wait_until("delivered", 12)

    handled = [*dict.fromkeys(reversed(seen.numbers))][::-1]  # the last attempt of each is the one that succeeded
    assert [n for n in handled if n % 2] == [1, 3, 5, 7, 9, 11]
    assert [n for n in handled if not n % 2] == [0, 2, 4, 6, 8, 10]


async def test_a_row_that_is_no_event_fails_alone(business: BusinessDatabase) -> None:
    seen = RecordingHandler()
    await business.publish(make_event(1), make_event(2))
    bad = "jsonb '[1]'" if business.name == "postgres" else "'[1]'"
    await business.run(f"UPDATE {business.outbox} SET payload = {bad} WHERE position = 1")

    async with business.listening({"test.seen": seen}):
        await business.wait_until("delivered", 1)
        await business.wait_until("failed", 1)

    assert seen.numbers == [2]


async def test_a_plain_function_is_a_handler_too(business: BusinessDatabase) -> None:
    seen: list[int] = []
    await business.publish(make_event(1))

    async with business.listening({"test.plain": lambda event: seen.append(number(event))}):
        await business.wait_until("delivered", 1)

    assert seen == [1]


async def test_stopping_finishes_claimed_deliveries(business: BusinessDatabase) -> None:
    begun, may_end = anyio.Event(), anyio.Event()

    async def slow(event: OutboxEvent) -> None:
        begun.set()
        await may_end.wait()

    await business.publish(make_event(1))
    async with business.listening({"test.slow": slow}) as listener:
        await begun.wait()
        listener.stop()
        may_end.set()
        await business.wait_until("delivered", 1)


@pytest.mark.parametrize("business", ["postgres"], indirect=True)
async def test_a_handlers_connection_sees_its_own_transaction_only(business: BusinessDatabase) -> None:
    outside: list[tuple[Any, ...]] = []

    async def look(event: OutboxEvent, connection: Any) -> None:
        await insert_handled(event, connection)
        outside.extend(await business.rows(EFFECTS))
        async with connection.transaction():
            await rows(connection, "SELECT 1")

    await business.publish(make_event(1))
    async with business.listening({"test.look": look}):
        await business.wait_until("delivered", 1)

    assert outside == [] and await business.rows(EFFECTS) == [(1,)]

"""From a business transaction to a handler: if it committed, and once."""

from typing import Any

import anyio
import pytest

from tape.outbox import OutboxEvent, TerminalHandlerError
from tests.outbox.places import Place, Seen, note, number, rows, said

EFFECTS = "SELECT n FROM orders WHERE note = 'handled' ORDER BY n"


async def test_p14_an_event_is_handled_if_and_only_if_its_transaction_committed(place: Place) -> None:
    seen = Seen()

    async with place.listening({"test.seen": seen}):
        await place.said(said(1), is_kept=False)
        await place.said(said(2), said(3))
        await place.wait_until("delivered", 2)

    assert sorted(seen.numbers) == [2, 3]
    assert await place.rows("SELECT n FROM orders ORDER BY n") == [(2,), (3,)]


async def test_p14_a_handlers_database_effect_applies_once_for_a_row_delivered_three_times_at_once(
    place: Place,
) -> None:
    event = said(1, idempotency_key="the-same")
    await place.said(event, said(1, idempotency_key="the-same"), said(1, idempotency_key="the-same"))

    async with place.listening({"test.note": note}):
        await place.wait_until("delivered", 3)

    assert await place.rows(EFFECTS) == [(1,)]


async def test_an_effect_of_an_attempt_that_failed_is_undone(place: Place) -> None:
    attempts: list[int] = []

    async def fail_first(event: OutboxEvent, connection: Any) -> None:
        await note(event, connection)
        attempts.append(1)
        if len(attempts) < 3:
            raise ConnectionError("not yet")

    await place.said(said(1))
    async with place.listening({"test.flaky": fail_first}):
        await place.wait_until("delivered", 1)

    assert await place.rows(EFFECTS) == [(1,)]
    assert await place.states("status, attempts") == [("delivered", 3)]


async def test_an_event_that_came_before_anybody_listened_is_handled(place: Place) -> None:
    seen = Seen()
    await place.said(said(1))

    async with place.listening({"test.seen": seen}):
        await seen.wait_for(1)

    assert seen.numbers == [1]


async def test_what_is_handled_is_what_was_said(place: Place) -> None:
    seen = Seen()
    event = said(1, target="worlds", trace_context=f"00-{'a' * 32}-{'b' * 16}-01", payload={"n": 1, "é": [1.5, None]})

    await place.said(event)
    async with place.listening({"test.seen": seen}, listen={"target": "worlds"}):
        await seen.wait_for(1)

    assert seen.events == [event]


async def test_every_handler_gets_its_own_delivery_and_one_that_breaks_hurts_no_other(place: Place) -> None:
    good, other, broken = Seen(), Seen(), Seen(lambda _: TerminalHandlerError("no"))
    handlers = {"test.good": good, "test.broken": broken, "test.other": other}

    await place.said(said(1))
    async with place.listening(handlers):
        await place.wait_until("failed", 1)

    table = f"{place.outbox}_deliveries"
    assert await place.rows(f"SELECT handler_name, status FROM {table} ORDER BY 1") == [
        ("test.broken", "failed"),
        ("test.good", "delivered"),
        ("test.other", "delivered"),
    ]


async def test_a_late_handler_that_begins_with_all_gets_what_its_generation_said(place: Place) -> None:
    first, late = Seen(), Seen()
    await place.said(said(1))
    async with place.listening({"test.first": first}):
        await place.wait_until("delivered", 1)

    async with place.listening({"test.late": late}, listen={"begin": "all"}):
        await late.wait_for(1)
        await place.wait_until("delivered", 1)

    assert first.numbers == late.numbers == [1]


async def test_a_late_handler_begins_with_what_has_not_ended(place: Place) -> None:
    late = Seen()
    await place.said(said(1))
    async with place.listening({"test.first": Seen()}):
        await place.wait_until("delivered", 1)

    async with place.listening({"test.late": late}):
        await place.said(said(2))
        await late.wait_for(1)

    assert late.numbers == [2]


async def test_an_event_with_a_target_reaches_that_target_only_and_one_without_reaches_all(place: Place) -> None:
    seen = Seen()
    await place.said(said(1, target="worlds"), said(2, target="platform"), said(3))

    async with place.listening({"platform.seen": seen}, listen={"target": "platform"}):
        await place.wait_until("delivered", 2)

    assert sorted(seen.numbers) == [2, 3]
    assert await place.states() == [("pending",), ("delivered",), ("delivered",)]


async def test_events_of_one_key_are_handled_in_order_although_one_is_tried_again(place: Place) -> None:
    failed: set[int] = set()

    def fail_once(event: OutboxEvent) -> object:
        n = number(event)
        if n % 3 == 0 and n not in failed:
            failed.add(n)
            return ConnectionError("once")
        return None

    seen = Seen(fail_once)
    await place.said(*(said(n, order_key=f"k{n % 2}") for n in range(12)))
    async with place.listening({"test.ordered": seen}, listen={"ordered": True}):
        await place.wait_until("delivered", 12)

    handled = list(dict.fromkeys(seen.numbers))
    assert [n for n in handled if n % 2] == [1, 3, 5, 7, 9, 11]
    assert [n for n in handled if not n % 2] == [0, 2, 4, 6, 8, 10]


async def test_a_row_that_is_no_event_fails_alone(place: Place) -> None:
    seen = Seen()
    await place.said(said(1), said(2))
    bad = "jsonb '[1]'" if place.name == "postgres" else "'[1]'"
    await place.run(f"UPDATE {place.outbox} SET payload = {bad} WHERE position = 1")

    async with place.listening({"test.seen": seen}):
        await place.wait_until("delivered", 1)
        await place.wait_until("failed", 1)

    assert seen.numbers == [2]


async def test_a_plain_function_is_a_handler_too(place: Place) -> None:
    seen: list[int] = []
    await place.said(said(1))

    async with place.listening({"test.plain": lambda event: seen.append(number(event))}):
        await place.wait_until("delivered", 1)

    assert seen == [1]


async def test_stopping_lets_what_was_begun_come_to_its_end(place: Place) -> None:
    begun, may_end = anyio.Event(), anyio.Event()

    async def slow(event: OutboxEvent) -> None:
        begun.set()
        await may_end.wait()

    await place.said(said(1))
    async with place.listening({"test.slow": slow}) as listener:
        await begun.wait()
        listener.stop()
        may_end.set()
        await place.wait_until("delivered", 1)


@pytest.mark.parametrize("place", ["postgres"], indirect=True)
async def test_a_handlers_connection_sees_its_own_transaction_only(place: Place) -> None:
    outside: list[tuple[Any, ...]] = []

    async def look(event: OutboxEvent, connection: Any) -> None:
        await note(event, connection)
        outside.extend(await place.rows(EFFECTS))
        async with connection.transaction():
            await rows(connection, "SELECT 1")

    await place.said(said(1))
    async with place.listening({"test.look": look}):
        await place.wait_until("delivered", 1)

    assert outside == [] and await place.rows(EFFECTS) == [(1,)]

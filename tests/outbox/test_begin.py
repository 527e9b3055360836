"""The rows a handler begins with: when it is new, when its filter is widened, and with older versions running."""

from datetime import timedelta
from typing import Any

import pytest

from tape.core.errors import UsageError
from tape.outbox import OutboxListener
from tape.outbox.database import open_outbox
from tests.outbox.business_database import BusinessDatabase, RecordingHandler, make_event
from tests.outbox.handler_version import HandlerVersion, expire_leases, mark_unseen

PLACED, SHIPPED = "orders.placed", "orders.shipped"
NARROW: dict[str, Any] = {"event_types": [PLACED]}
WIDE: dict[str, Any] = {"event_types": [PLACED, SHIPPED]}


def shipped(n: int, **fields: Any) -> Any:
    return make_event(n, event_type=SHIPPED, **fields)


async def worked_off(
    business: BusinessDatabase, handler: RecordingHandler, name: str = "test.seen", **listen: Any
) -> None:
    """One listener that handles what is due and leaves."""
    listener = OutboxListener(business.url)
    listener.listen(handler_name=name, handler=handler, **listen)
    await listener.run_once()


async def test_a_widened_handler_gets_the_rows_of_the_added_type_that_wait(business: BusinessDatabase) -> None:
    seen = RecordingHandler()
    await business.publish(make_event(1), shipped(2))
    await worked_off(business, seen, **NARROW)
    assert await business.states() == [("delivered",), ("pending",)]

    await worked_off(business, seen, **WIDE)

    assert seen.numbers == [1, 2] and await business.states() == [("delivered",), ("delivered",)]


async def test_a_handler_that_takes_a_target_too_gets_what_waits_for_that_target(business: BusinessDatabase) -> None:
    seen = RecordingHandler()
    await business.publish(make_event(1), make_event(2, target="billing"))
    await worked_off(business, seen)

    await worked_off(business, seen, target="billing")

    assert seen.numbers == [1, 2]


async def test_a_new_handler_begins_with_the_rows_that_have_not_ended(business: BusinessDatabase) -> None:
    first, second = (
        RecordingHandler(lambda event: ConnectionError("later") if event.payload["n"] == 2 else None),
        RecordingHandler(),
    )
    await business.publish(make_event(1), make_event(2), shipped(3))
    await worked_off(business, first, "test.first", **NARROW)
    assert await business.states() == [("delivered",), ("in_flight",), ("pending",)]

    await worked_off(business, second, "test.second")

    assert second.numbers == [2, 3]


@pytest.mark.parametrize(("begin", "numbers"), [("all", [1, 2, 3, 4]), ("now", []), (3, [3, 4])])
async def test_a_new_handler_begins_where_it_asks_to(
    business: BusinessDatabase, begin: Any, numbers: list[int]
) -> None:
    second = RecordingHandler()
    await business.publish(make_event(1), make_event(2), make_event(3))
    await worked_off(business, RecordingHandler(), "test.first")
    await business.publish(make_event(4))

    await worked_off(business, second, "test.second", begin=begin)

    assert second.numbers == numbers


@pytest.mark.parametrize("begin", ["now", 3])
async def test_whatever_it_begins_with_it_gets_all_later_rows(business: BusinessDatabase, begin: Any) -> None:
    seen = RecordingHandler()
    await business.publish(make_event(1), make_event(2))
    await worked_off(business, seen, begin=begin)

    await business.publish(make_event(3))
    await worked_off(business, seen, begin=begin)

    assert seen.numbers == [3]


async def test_the_rows_that_a_handler_began_without_stay_so_when_it_is_widened(business: BusinessDatabase) -> None:
    seen = RecordingHandler()
    await business.publish(make_event(1), shipped(2))
    await worked_off(business, seen, begin="now", **NARROW)

    await worked_off(business, seen, **WIDE)

    assert seen.numbers == [2]


async def test_a_wider_filter_repeats_no_delivered_row(business: BusinessDatabase) -> None:
    seen = RecordingHandler()
    await business.publish(make_event(1), make_event(2))
    await worked_off(business, seen, **NARROW)

    await worked_off(business, seen, begin="all", **WIDE)

    assert seen.numbers == [1, 2]


@pytest.mark.parametrize("begin", ["later", -1, True, None, 2**63, 10**30])
def test_begin_is_one_of_four_values(begin: Any) -> None:
    with pytest.raises(UsageError, match="begin"):
        OutboxListener("sqlite:///x.db").listen(handler_name="test.seen", handler=RecordingHandler(), begin=begin)


async def test_an_older_version_that_registers_last_takes_no_type_from_a_newer_one(business: BusinessDatabase) -> None:
    async with open_outbox(business.url) as database:
        new, old = HandlerVersion(database, PLACED, SHIPPED), HandlerVersion(database, PLACED)
        await new.versions.register()
        await old.versions.register()
        await business.publish(make_event(1), shipped(2))

        assert (await old.claimed(), await new.claimed()) == ([PLACED], [SHIPPED])


async def test_a_version_never_claims_a_row_that_it_does_not_match(
    business: BusinessDatabase,
) -> None:
    async with open_outbox(business.url) as database:
        new, old = HandlerVersion(database, PLACED, SHIPPED), HandlerVersion(database, PLACED)
        await new.versions.register()
        await business.publish(shipped(1))
        assert await new.claimed() == [SHIPPED]
        await old.versions.register()
        await expire_leases(business)

        assert (await old.claimed(), await new.claimed()) == ([], [SHIPPED])


async def test_two_versions_of_a_handler_have_one_delivery_of_a_row(business: BusinessDatabase) -> None:
    one, other = RecordingHandler(), RecordingHandler()
    wide = {"listen": WIDE}

    async with business.listening({"test.seen": one}), business.listening({"test.seen": other}, **wide):
        await business.publish(*(make_event(n) for n in range(20)))
        await business.wait_until("delivered", 20)

    assert sorted(one.numbers + other.numbers) == list(range(20))


async def test_rows_are_fanned_out_to_a_handler_while_none_of_its_versions_runs(business: BusinessDatabase) -> None:
    seen, other = RecordingHandler(), RecordingHandler()
    await worked_off(business, seen, **WIDE)
    await business.publish(shipped(1))
    await worked_off(business, other, "test.other")

    await worked_off(business, seen, **NARROW)
    await worked_off(business, seen, **WIDE)

    assert (seen.numbers, other.numbers) == ([1], [1])


async def test_a_version_that_is_gone_for_long_leaves_its_rows_as_dead_letters(business: BusinessDatabase) -> None:
    async with open_outbox(business.url) as database:
        new, old = HandlerVersion(database, PLACED, SHIPPED), HandlerVersion(database, PLACED)
        await new.versions.register()
        await old.versions.register()
        await business.publish(make_event(1), shipped(2))
        assert await old.claimed() == [PLACED]
        await mark_unseen(business, new)

        await old.versions.refresh(timedelta(hours=1))
        await business.publish(shipped(3))
        assert await old.claimed() == []

    states = await business.states("status, last_error")
    assert [status for status, _ in states] == ["in_flight", "failed", "pending"]
    assert "orders.shipped" in states[1][1]


async def test_a_version_that_runs_stays_however_long_ago_it_was_registered(business: BusinessDatabase) -> None:
    async with open_outbox(business.url) as database:
        new, old = HandlerVersion(database, PLACED, SHIPPED), HandlerVersion(database, PLACED)
        await new.versions.register()
        await old.versions.register()
        await mark_unseen(business, new)
        await new.versions.refresh(None)

        await old.versions.refresh(timedelta(hours=1))
        await business.publish(shipped(1))

        assert await new.claimed() == [SHIPPED]


async def test_a_retired_version_is_registered_again_as_soon_as_it_runs(business: BusinessDatabase) -> None:
    async with open_outbox(business.url) as database:
        new, old = HandlerVersion(database, PLACED, SHIPPED), HandlerVersion(database, PLACED)
        await new.versions.register()
        await old.versions.register()
        await mark_unseen(business, new)
        await old.versions.refresh(timedelta(hours=1))
        await business.publish(shipped(1))
        assert await old.claimed() == []

        await new.versions.refresh(None)

        assert await new.claimed() == [SHIPPED]

"""RowFilter rows a handler begins with: when it is new, when its filter is widened, and beside its older version."""

from datetime import timedelta
from typing import Any

import pytest

from tape.core.errors import UsageError
from tape.outbox import OutboxListener
from tape.outbox.database import open_outbox
from tests.outbox.places import Place, Seen, said
from tests.outbox.versions import Running, lapse, silence

PLACED, SHIPPED = "orders.placed", "orders.shipped"
NARROW: dict[str, Any] = {"event_types": [PLACED]}
WIDE: dict[str, Any] = {"event_types": [PLACED, SHIPPED]}


def shipped(n: int, **fields: Any) -> Any:
    return said(n, event_type=SHIPPED, **fields)


async def worked_off(place: Place, handler: Seen, name: str = "test.seen", **listen: Any) -> None:
    """One listener that handles what is due and leaves."""
    listener = OutboxListener(place.url)
    listener.listen(handler_name=name, handler=handler, **listen)
    await listener.run_once()


async def test_a_widened_handler_gets_the_rows_of_the_added_type_that_wait(place: Place) -> None:
    seen = Seen()
    await place.said(said(1), shipped(2))
    await worked_off(place, seen, **NARROW)
    assert await place.states() == [("delivered",), ("pending",)]

    await worked_off(place, seen, **WIDE)

    assert seen.numbers == [1, 2] and await place.states() == [("delivered",), ("delivered",)]


async def test_a_handler_that_takes_a_target_too_gets_what_waits_for_that_target(place: Place) -> None:
    seen = Seen()
    await place.said(said(1), said(2, target="billing"))
    await worked_off(place, seen)

    await worked_off(place, seen, target="billing")

    assert seen.numbers == [1, 2]


async def test_a_new_handler_begins_with_the_rows_that_have_not_ended(place: Place) -> None:
    first, second = Seen(lambda event: ConnectionError("later") if event.payload["n"] == 2 else None), Seen()
    await place.said(said(1), said(2), shipped(3))
    await worked_off(place, first, "test.first", **NARROW)
    assert await place.states() == [("delivered",), ("in_flight",), ("pending",)]

    await worked_off(place, second, "test.second")

    assert second.numbers == [2, 3]


@pytest.mark.parametrize(("begin", "numbers"), [("all", [1, 2, 3, 4]), ("now", []), (3, [3, 4])])
async def test_a_new_handler_begins_where_it_asks_to(place: Place, begin: Any, numbers: list[int]) -> None:
    second = Seen()
    await place.said(said(1), said(2), said(3))
    await worked_off(place, Seen(), "test.first")
    await place.said(said(4))

    await worked_off(place, second, "test.second", begin=begin)

    assert second.numbers == numbers


@pytest.mark.parametrize("begin", ["now", 3])
async def test_whatever_it_begins_with_it_gets_all_later_rows(place: Place, begin: Any) -> None:
    seen = Seen()
    await place.said(said(1), said(2))
    await worked_off(place, seen, begin=begin)

    await place.said(said(3))
    await worked_off(place, seen, begin=begin)

    assert seen.numbers == [3]


async def test_the_rows_that_a_handler_began_without_stay_so_when_it_is_widened(place: Place) -> None:
    seen = Seen()
    await place.said(said(1), shipped(2))
    await worked_off(place, seen, begin="now", **NARROW)

    await worked_off(place, seen, **WIDE)

    assert seen.numbers == [2]


async def test_what_a_handler_has_had_does_not_come_again_with_a_wider_filter(place: Place) -> None:
    seen = Seen()
    await place.said(said(1), said(2))
    await worked_off(place, seen, **NARROW)

    await worked_off(place, seen, begin="all", **WIDE)

    assert seen.numbers == [1, 2]


@pytest.mark.parametrize("begin", ["later", -1, True, None, 2**63, 10**30])
def test_a_beginning_is_one_of_four(begin: Any) -> None:
    with pytest.raises(UsageError, match="begin"):
        OutboxListener("sqlite:///x.db").listen(handler_name="test.seen", handler=Seen(), begin=begin)


async def test_an_older_version_that_registers_last_takes_no_type_from_a_newer_one(place: Place) -> None:
    async with open_outbox(place.url) as database:
        new, old = Running(database, PLACED, SHIPPED), Running(database, PLACED)
        await new.versions.register()
        await old.versions.register()
        await place.said(said(1), shipped(2))

        assert (await old.claimed(), await new.claimed()) == ([PLACED], [SHIPPED])


async def test_a_row_that_one_version_left_is_never_given_to_one_that_does_not_take_it(place: Place) -> None:
    async with open_outbox(place.url) as database:
        new, old = Running(database, PLACED, SHIPPED), Running(database, PLACED)
        await new.versions.register()
        await place.said(shipped(1))
        assert await new.claimed() == [SHIPPED]
        await old.versions.register()
        await lapse(place)

        assert (await old.claimed(), await new.claimed()) == ([], [SHIPPED])


async def test_two_versions_of_a_handler_have_one_delivery_of_a_row(place: Place) -> None:
    one, other = Seen(), Seen()
    wide = {"listen": WIDE}

    async with place.listening({"test.seen": one}), place.listening({"test.seen": other}, **wide):
        await place.said(*(said(n) for n in range(20)))
        await place.wait_until("delivered", 20)

    assert sorted(one.numbers + other.numbers) == list(range(20))


async def test_rows_are_dealt_to_a_handler_while_none_of_its_versions_runs(place: Place) -> None:
    seen, beside = Seen(), Seen()
    await worked_off(place, seen, **WIDE)
    await place.said(shipped(1))
    await worked_off(place, beside, "test.beside")

    await worked_off(place, seen, **NARROW)
    await worked_off(place, seen, **WIDE)

    assert (seen.numbers, beside.numbers) == ([1], [1])


async def test_a_version_that_is_gone_for_long_leaves_its_rows_as_dead_letters(place: Place) -> None:
    async with open_outbox(place.url) as database:
        new, old = Running(database, PLACED, SHIPPED), Running(database, PLACED)
        await new.versions.register()
        await old.versions.register()
        await place.said(said(1), shipped(2))
        assert await old.claimed() == [PLACED]
        await silence(place, new)

        await old.versions.refresh(timedelta(hours=1))
        await place.said(shipped(3))
        assert await old.claimed() == []

    states = await place.states("status, last_error")
    assert [status for status, _ in states] == ["in_flight", "failed", "pending"]
    assert "orders.shipped" in states[1][1]


async def test_a_version_that_runs_stays_however_long_ago_it_was_registered(place: Place) -> None:
    async with open_outbox(place.url) as database:
        new, old = Running(database, PLACED, SHIPPED), Running(database, PLACED)
        await new.versions.register()
        await old.versions.register()
        await silence(place, new)
        await new.versions.refresh(None)

        await old.versions.refresh(timedelta(hours=1))
        await place.said(shipped(1))

        assert await new.claimed() == [SHIPPED]


async def test_a_version_that_was_given_up_is_there_again_as_soon_as_it_runs(place: Place) -> None:
    async with open_outbox(place.url) as database:
        new, old = Running(database, PLACED, SHIPPED), Running(database, PLACED)
        await new.versions.register()
        await old.versions.register()
        await silence(place, new)
        await old.versions.refresh(timedelta(hours=1))
        await place.said(shipped(1))
        assert await old.claimed() == []

        await new.versions.refresh(None)

        assert await new.claimed() == [SHIPPED]

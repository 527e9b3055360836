"""The attempts of a delivery when versions of its handler have different limits."""

from datetime import timedelta
from typing import Any

import pytest

from tape.core.errors import UsageError
from tape.core.task import Done, Failed
from tape.outbox import RetryPolicy
from tape.outbox.database import open_outbox
from tests.outbox.business_database import BusinessDatabase, make_event
from tests.outbox.handler_version import HandlerVersion, expire_leases, mark_unseen

PLACED, SHIPPED = "orders.placed", "orders.shipped"


async def fail(business: BusinessDatabase, running: HandlerVersion, times: int) -> None:
    for _ in range(times):
        (task,) = await running.tasks()
        assert await running.settle(task, Failed("down")) is None
        await expire_leases(business)


async def test_a_delivery_fails_at_the_largest_limit_of_the_remaining_versions(business: BusinessDatabase) -> None:
    async with open_outbox(business.url) as database:
        old, new = (HandlerVersion(database, PLACED, attempts=n, is_ordered=True) for n in (6, 2))
        await old.versions.register()
        await business.publish(make_event(1, order_key="k"), make_event(2, order_key="k"))
        await fail(business, old, times=3)
        await new.versions.register()
        await mark_unseen(business, old)
        assert await new.versions.refresh(timedelta(hours=1)) == ["test.seen"]

        (behind,) = await new.tasks()

    assert behind.payload_json == make_event(2).payload_json
    assert await business.states("status, attempts, last_error") == [
        ("failed", 3, "no attempt is left: down"),
        ("in_flight", 0, None),
    ]


@pytest.mark.parametrize(("type_", "target"), [(PLACED, "here"), (SHIPPED, "elsewhere")])
async def test_only_versions_that_match_a_row_limit_its_attempts(
    business: BusinessDatabase, type_: str, target: str
) -> None:
    async with open_outbox(business.url) as database:
        other = HandlerVersion(database, type_, attempts=6, target=target)
        taking = HandlerVersion(database, PLACED, SHIPPED, attempts=1, target="here")
        await other.versions.register()
        await taking.versions.register()
        await business.publish(make_event(1, event_type=SHIPPED, target="here"))
        assert await taking.claimed() == [SHIPPED]
        await expire_leases(business)

        assert await other.claimed() == []

    assert await business.states() == [("failed",)]


async def test_a_delivery_waits_while_a_matching_version_allows_more_attempts(
    business: BusinessDatabase,
) -> None:
    async with open_outbox(business.url) as database:
        old, new = (HandlerVersion(database, PLACED, attempts=n) for n in (6, 2))
        await old.versions.register()
        await new.versions.register()
        await business.publish(make_event(1))
        await fail(business, old, times=3)
        assert await new.claimed() == []

        (task,) = await old.tasks()

        assert task.attempts == 4 and await old.settle(task, Done()) is None


async def test_a_last_attempt_with_a_valid_lease_is_settled_by_its_owner(business: BusinessDatabase) -> None:
    async with open_outbox(business.url) as database:
        old, new = (HandlerVersion(database, PLACED, attempts=n) for n in (6, 2))
        await old.versions.register()
        await business.publish(make_event(1))
        await fail(business, old, times=3)
        (task,) = await old.tasks()
        await new.versions.register()
        await mark_unseen(business, old)
        await new.versions.refresh(timedelta(hours=1))
        assert await new.claimed() == []

        assert await old.settle(task, Done()) is None

    assert await business.states() == [("delivered",)]


async def test_an_attempt_that_ends_after_its_delivery_failed_settles_nothing(
    business: BusinessDatabase,
) -> None:
    async with open_outbox(business.url) as database:
        handler = HandlerVersion(database, PLACED, attempts=1)
        await handler.versions.register()
        await business.publish(make_event(1))
        (task,) = await handler.tasks()
        await expire_leases(business)
        assert await HandlerVersion(database, PLACED, attempts=1).claimed() == []

        assert await handler.settle(task, Done()) is not None

    assert await business.states() == [("failed",)]


@pytest.mark.parametrize("retries", [-1, 2**31 - 1, 10**30, 1.5, True])
def test_a_retry_policy_has_a_whole_number_of_retries_that_a_database_can_keep(retries: Any) -> None:
    with pytest.raises(UsageError, match="retries"):
        RetryPolicy(retries=retries)

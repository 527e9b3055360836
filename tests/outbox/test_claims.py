"""What a listener claims: never an expired claim, and never blocked by rows of others."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tape.core.errors import Unavailable
from tape.core.outbox import HandlerSubscription
from tape.core.task import ClaimRequest, Died, Done, Outcome, Released, Settlement, Task, TaskClaim
from tape.outbox.database import WakingOutboxDatabase, open_outbox
from tape.store.clock import now_ms
from tape.store.outbox import deliveries as deliveries_module
from tape.store.outbox.database import OutboxDatabase
from tape.store.outbox.deliveries import Deliveries
from tape.store.outbox.table import OutboxTable
from tape.store.outbox.versions import HandlerVersions
from tests.outbox.business_database import BusinessDatabase, make_event
from tests.outbox.handler_version import expire_leases

MANY = 1_200  # more than are dealt out at a time
HOUR_MS = 3_600_000
MINE = HandlerSubscription(handler_name="test.mine", generation=0, channel="outbox_gen_0")
CLAIM = ClaimRequest(owner="me", reaction_ids=("test.mine",), lease=timedelta(minutes=1))


@pytest.fixture
async def database(business: BusinessDatabase) -> AsyncIterator[WakingOutboxDatabase]:
    async with open_outbox(business.url) as database:
        yield database


@pytest.fixture
async def deliveries(database: WakingOutboxDatabase) -> Deliveries:
    deliveries = Deliveries(database, [MINE], {})
    await HandlerVersions(database, [MINE]).register()
    return deliveries


async def test_rows_without_a_handler_do_not_block_later_rows(
    business: BusinessDatabase, deliveries: Deliveries
) -> None:
    await business.publish(*(make_event(n, target="elsewhere") for n in range(MANY)), make_event(MANY))

    claimed = await deliveries.claim(CLAIM)
    while claimed.more_after == timedelta(0):
        claimed = await deliveries.claim(CLAIM)

    assert [task.payload_json for task in claimed.tasks] == [make_event(MANY).payload_json]


async def test_a_locked_row_does_not_cause_an_immediate_poll(postgres: BusinessDatabase) -> None:
    await postgres.publish(make_event(1))

    async with open_outbox(postgres.url) as database, postgres.connected() as other, other.transaction():
        await other.execute("SELECT 1 FROM core.outbox FOR UPDATE")
        deliveries = Deliveries(database, [MINE], {})
        await HandlerVersions(database, [MINE]).register()

        assert await deliveries.claim(CLAIM) == ((), None, False)


async def test_a_released_delivery_has_used_no_attempt_and_is_due_at_once(
    business: BusinessDatabase, deliveries: Deliveries
) -> None:
    await business.publish(make_event(1))
    (first,) = (await deliveries.claim(CLAIM)).tasks
    assert await settle(deliveries, first, Released()) == [None]

    (second,) = (await deliveries.claim(replace(CLAIM, owner="other"))).tasks

    assert (second.attempts, second.attempt) == (1, 2)
    assert await business.states("status, last_error") == [("in_flight", None)]


async def test_an_earlier_attempt_of_the_same_worker_loses_its_lease(
    business: BusinessDatabase, deliveries: Deliveries
) -> None:
    await business.publish(make_event(1))
    (first,) = (await deliveries.claim(CLAIM)).tasks
    await expire_leases(business)
    (second,) = (await deliveries.claim(CLAIM)).tasks
    claims = [claim_of(first), claim_of(second)]

    lost, kept = await deliveries.extend(claims, CLAIM.lease)
    stale, settled = await deliveries.settle([Settlement(claim, Done()) for claim in claims])

    assert (lost is None, kept is None) == (False, True)
    assert (stale is None, settled is None) == (False, True)


async def test_p11_an_earlier_attempt_of_the_same_worker_settles_nothing(
    business: BusinessDatabase, deliveries: Deliveries
) -> None:
    await business.publish(make_event(1))
    (first,) = (await deliveries.claim(CLAIM)).tasks
    await expire_leases(business)
    (second,) = (await deliveries.claim(CLAIM)).tasks

    (stale,) = await settle(deliveries, first, Died("late"))

    assert stale is not None and await business.states() == [("in_flight",)]
    assert await settle(deliveries, second, Done()) == [None]


async def test_p11_an_earlier_attempt_of_the_same_worker_renews_no_lease(
    business: BusinessDatabase, deliveries: Deliveries
) -> None:
    await business.publish(make_event(1))
    (first,) = (await deliveries.claim(CLAIM)).tasks
    await expire_leases(business)
    (second,) = (await deliveries.claim(CLAIM)).tasks
    await expire_leases(business)

    (stale,) = await deliveries.extend([claim_of(first)], CLAIM.lease)

    (third,) = (await deliveries.claim(CLAIM)).tasks
    assert stale is not None and (second.attempt, third.attempt) == (2, 3)


async def test_an_invalid_row_that_cannot_be_settled_does_not_fail_the_claim(
    business: BusinessDatabase,
) -> None:
    await business.publish(make_event(1), make_event(2))
    bad = "jsonb '[1]'" if business.name == "postgres" else "'[1]'"
    await business.run(f"UPDATE {business.outbox} SET payload = {bad} WHERE position = 1")

    async with open_outbox(business.url) as database:
        forgetful = Forgetful(database)
        deliveries = Deliveries(forgetful, [MINE], {})
        await HandlerVersions(forgetful, [MINE]).register()
        forgetful.left = 1

        assert [task.payload_json for task in (await deliveries.claim(CLAIM)).tasks] == [make_event(2).payload_json]


class Forgetful:
    """A database that answers so many times more, and then is gone."""

    def __init__(self, database: OutboxDatabase) -> None:
        self._database = database
        self.steps, self.schema, self.transaction = database.steps, database.schema, database.transaction
        self.left = 100

    @asynccontextmanager
    async def own(self) -> AsyncIterator[Any]:
        self.left -= 1
        if self.left < 0:
            raise Unavailable("gone")
        async with self._database.own() as connection:
            yield connection

    once = own


async def test_an_attempt_from_before_a_replay_settles_nothing_after_it(
    business: BusinessDatabase, database: WakingOutboxDatabase, deliveries: Deliveries
) -> None:
    event = make_event(1)
    await business.publish(event)
    (before,) = (await deliveries.claim(CLAIM)).tasks
    await settle(deliveries, before, Died("no"))
    await OutboxTable(database).replay([event.event_id], 0, "me")
    (after,) = (await deliveries.claim(CLAIM)).tasks

    (stale,) = await settle(deliveries, before, Done())

    assert stale is not None and after.attempt > before.attempt
    assert await settle(deliveries, after, Done()) == [None]


async def test_an_event_waits_for_an_earlier_one_of_its_key_that_is_replayed(
    business: BusinessDatabase, database: WakingOutboxDatabase
) -> None:
    ordered = replace(MINE, is_ordered=True)
    deliveries = Deliveries(database, [ordered], {})
    await HandlerVersions(database, [ordered]).register()
    first, second = (make_event(n, order_key="k") for n in (1, 2))
    await business.publish(first, second)
    (task,) = (await deliveries.claim(CLAIM)).tasks
    await settle(deliveries, task, Died("no"))

    await OutboxTable(database).replay([first.event_id], 0, "me")

    assert [task.payload_json for task in (await deliveries.claim(CLAIM)).tasks] == [first.payload_json]


async def test_an_attempt_from_before_a_hand_over_settles_nothing_after_it(
    business: BusinessDatabase, database: WakingOutboxDatabase, deliveries: Deliveries
) -> None:
    await business.publish(make_event(1))
    (before,) = (await deliveries.claim(CLAIM)).tasks
    await OutboxTable(database).hand_over(0, 5)
    await OutboxTable(database).hand_over(5, 0)
    (after,) = (await deliveries.claim(CLAIM)).tasks

    (stale,) = await settle(deliveries, before, Done())

    assert stale is not None and after.attempt > before.attempt


async def test_when_the_clock_jumps_ahead_a_claim_may_go_to_another_and_only_the_newest_settles(
    sqlite: BusinessDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    await sqlite.publish(make_event(1))
    async with open_outbox(sqlite.url) as database:
        deliveries = Deliveries(database, [MINE], {})
        await HandlerVersions(database, [MINE]).register()
        (first,) = (await deliveries.claim(CLAIM)).tasks
        monkeypatch.setattr(deliveries_module, "now_ms", lambda: now_ms() + HOUR_MS)
        (second,) = (await deliveries.claim(replace(CLAIM, owner="other"))).tasks

        (stale,) = await settle(deliveries, first, Done())
        assert stale is not None and await settle(deliveries, second, Done()) == [None]


async def test_when_the_clock_jumps_back_claimed_rows_settle_and_new_rows_are_claimed(
    sqlite: BusinessDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    await sqlite.publish(make_event(1))
    async with open_outbox(sqlite.url) as database:
        deliveries = Deliveries(database, [MINE], {})
        await HandlerVersions(database, [MINE]).register()
        (first,) = (await deliveries.claim(CLAIM)).tasks
        monkeypatch.setattr(deliveries_module, "now_ms", lambda: now_ms() - HOUR_MS)
        await sqlite.publish(make_event(2))
        (second,) = (await deliveries.claim(CLAIM)).tasks

        assert [await settle(deliveries, task, Done()) for task in (first, second)] == [[None], [None]]


async def settle(deliveries: Deliveries, task: Task, outcome: Outcome) -> Sequence[object]:
    return await deliveries.settle([Settlement(claim_of(task), outcome)])


def claim_of(task: Task) -> TaskClaim:
    return task.claim

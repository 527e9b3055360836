"""What a listener claims: never an old claim again, and never behind what others are for."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tape.core.errors import Unavailable
from tape.core.outbox import Subscription
from tape.core.task import ClaimRequest, Died, Done, Outcome, Released, Settlement, Task, TaskClaim
from tape.outbox.database import Database, open_outbox
from tape.store.clock import now_ms
from tape.store.outbox import deliveries as deliveries_module
from tape.store.outbox.database import OutboxDatabase
from tape.store.outbox.deliveries import Deliveries
from tape.store.outbox.table import OutboxTable
from tape.store.outbox.versions import HandlerVersions
from tests.outbox.places import Place, said

MANY = 1_200  # more than are dealt out at a time
HOUR_MS = 3_600_000
MINE = Subscription(handler_name="test.mine", generation=0, channel="outbox_gen_0")
WANT = ClaimRequest(owner="me", reaction_ids=("test.mine",), lease=timedelta(minutes=1))


@pytest.fixture
async def database(place: Place) -> AsyncIterator[Database]:
    async with open_outbox(place.url) as database:
        yield database


@pytest.fixture
async def deliveries(database: Database) -> Deliveries:
    deliveries = Deliveries(database, [MINE], {})
    await HandlerVersions(database, [MINE]).register()
    return deliveries


async def test_rows_that_are_for_nobody_here_do_not_hold_up_those_behind_them(
    place: Place, deliveries: Deliveries
) -> None:
    await place.said(*(said(n, target="elsewhere") for n in range(MANY)), said(MANY))

    claimed = await deliveries.claim(WANT)
    while claimed.more_after == timedelta(0):
        claimed = await deliveries.claim(WANT)

    assert [task.payload_json for task in claimed.tasks] == [said(MANY).payload_json]


async def test_a_row_that_somebody_has_in_hand_is_not_asked_for_again_at_once(postgres: Place) -> None:
    await postgres.said(said(1))

    async with open_outbox(postgres.url) as database, postgres.connected() as other, other.transaction():
        await other.execute("SELECT 1 FROM core.outbox FOR UPDATE")
        deliveries = Deliveries(database, [MINE], {})
        await HandlerVersions(database, [MINE]).register()

        assert await deliveries.claim(WANT) == ((), None, False)


async def test_a_released_delivery_has_used_no_attempt_and_is_due_at_once(place: Place, deliveries: Deliveries) -> None:
    await place.said(said(1))
    (first,) = (await deliveries.claim(WANT)).tasks
    assert await settle(deliveries, first, Released()) == [None]

    (second,) = (await deliveries.claim(replace(WANT, owner="other"))).tasks

    assert (second.attempts, second.attempt) == (1, 2)
    assert await place.states("status, last_error") == [("in_flight", None)]


async def test_an_earlier_attempt_of_the_same_worker_is_told_that_its_lease_is_lost(
    place: Place, deliveries: Deliveries
) -> None:
    await place.said(said(1))
    (first,) = (await deliveries.claim(WANT)).tasks
    await place.run(f"UPDATE {place.outbox}_deliveries SET next_attempt_at = {place.long_ago}")
    (second,) = (await deliveries.claim(WANT)).tasks
    claims = [claim_of(first), claim_of(second)]

    lost, kept = await deliveries.extend(claims, WANT.lease)
    stale, settled = await deliveries.settle([Settlement(claim, Done()) for claim in claims])

    assert (lost is None, kept is None) == (False, True)
    assert (stale is None, settled is None) == (False, True)


async def test_a_row_that_is_no_event_and_cannot_be_settled_costs_nobody_else_their_claim(place: Place) -> None:
    await place.said(said(1), said(2))
    bad = "jsonb '[1]'" if place.name == "postgres" else "'[1]'"
    await place.run(f"UPDATE {place.outbox} SET payload = {bad} WHERE position = 1")

    async with open_outbox(place.url) as database:
        forgetful = Forgetful(database)
        deliveries = Deliveries(forgetful, [MINE], {})
        await HandlerVersions(forgetful, [MINE]).register()
        forgetful.left = 1

        assert [task.payload_json for task in (await deliveries.claim(WANT)).tasks] == [said(2).payload_json]


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
    place: Place, database: Database, deliveries: Deliveries
) -> None:
    event = said(1)
    await place.said(event)
    (before,) = (await deliveries.claim(WANT)).tasks
    await settle(deliveries, before, Died("no"))
    await OutboxTable(database).replay([event.event_id], 0, "me")
    (after,) = (await deliveries.claim(WANT)).tasks

    (stale,) = await settle(deliveries, before, Done())

    assert stale is not None and after.attempt > before.attempt
    assert await settle(deliveries, after, Done()) == [None]


async def test_an_attempt_from_before_a_hand_over_settles_nothing_after_it(
    place: Place, database: Database, deliveries: Deliveries
) -> None:
    await place.said(said(1))
    (before,) = (await deliveries.claim(WANT)).tasks
    await OutboxTable(database).hand_over(0, 5)
    await OutboxTable(database).hand_over(5, 0)
    (after,) = (await deliveries.claim(WANT)).tasks

    (stale,) = await settle(deliveries, before, Done())

    assert stale is not None and after.attempt > before.attempt


async def test_when_the_clock_jumps_ahead_a_claim_may_go_to_another_and_only_the_newest_settles(
    sqlite: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    await sqlite.said(said(1))
    async with open_outbox(sqlite.url) as database:
        deliveries = Deliveries(database, [MINE], {})
        await HandlerVersions(database, [MINE]).register()
        (first,) = (await deliveries.claim(WANT)).tasks
        monkeypatch.setattr(deliveries_module, "now_ms", lambda: now_ms() + HOUR_MS)
        (second,) = (await deliveries.claim(replace(WANT, owner="other"))).tasks

        (stale,) = await settle(deliveries, first, Done())
        assert stale is not None and await settle(deliveries, second, Done()) == [None]


async def test_when_the_clock_jumps_back_what_is_in_hand_is_settled_and_what_is_new_is_claimed(
    sqlite: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    await sqlite.said(said(1))
    async with open_outbox(sqlite.url) as database:
        deliveries = Deliveries(database, [MINE], {})
        await HandlerVersions(database, [MINE]).register()
        (first,) = (await deliveries.claim(WANT)).tasks
        monkeypatch.setattr(deliveries_module, "now_ms", lambda: now_ms() - HOUR_MS)
        await sqlite.said(said(2))
        (second,) = (await deliveries.claim(WANT)).tasks

        assert [await settle(deliveries, task, Done()) for task in (first, second)] == [[None], [None]]


async def settle(deliveries: Deliveries, task: Task, outcome: Outcome) -> Sequence[object]:
    return await deliveries.settle([Settlement(claim_of(task), outcome)])


def claim_of(task: Task) -> TaskClaim:
    return task.claim

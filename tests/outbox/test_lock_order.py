"""Locks of the outbox are taken in one order: versions, then rows, then deliveries."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeAlias
from uuid import UUID

import anyio
import pytest

from tape.core.task import Died, Done, Settlement, TaskClaim
from tape.outbox.database import WakingOutboxDatabase, open_outbox
from tape.store.outbox.table import OutboxTable
from tests.deadlines import DEADLINE_S
from tests.outbox.business_database import BusinessDatabase, make_event
from tests.outbox.handler_version import CLAIM, HandlerVersion, expire_leases

LOW, HIGH = UUID(int=1), UUID(int=2)
ROW = "SELECT 1 FROM core.outbox WHERE id = $1 FOR NO KEY UPDATE"
DELIVERY = "SELECT 1 FROM core.outbox_deliveries WHERE event_id = $1 FOR NO KEY UPDATE"
BLOCKED = "SELECT count(*) FROM pg_stat_activity WHERE pg_backend_pid() = ANY (pg_blocking_pids(pid))"

Work: TypeAlias = Callable[[WakingOutboxDatabase, HandlerVersion, list[TaskClaim]], Awaitable[Any]]


async def hand_over(database: WakingOutboxDatabase, running: HandlerVersion, claims: list[TaskClaim]) -> None:
    await OutboxTable(database).hand_over(0, 1)


async def settle(database: WakingOutboxDatabase, running: HandlerVersion, claims: list[TaskClaim]) -> None:
    await running.deliveries.settle([Settlement(claim, Done()) for claim in claims])


async def extend(database: WakingOutboxDatabase, running: HandlerVersion, claims: list[TaskClaim]) -> None:
    await running.deliveries.extend(claims, CLAIM.lease)


@pytest.fixture
async def database(postgres: BusinessDatabase) -> AsyncIterator[WakingOutboxDatabase]:
    async with open_outbox(postgres.url) as database:
        yield database


@pytest.mark.parametrize(
    ("work", "lock"),
    [(hand_over, ROW), (settle, ROW), (hand_over, DELIVERY), (settle, DELIVERY), (extend, DELIVERY)],
    ids=["hand-over-rows", "settle-rows", "hand-over-deliveries", "settle-deliveries", "extend-deliveries"],
)
async def test_locks_are_taken_in_the_order_of_ids(
    postgres: BusinessDatabase, database: WakingOutboxDatabase, work: Work, lock: str
) -> None:
    running, claims = await claimed(postgres, database)

    async with postgres.connected() as other, other.transaction():
        await other.execute(lock, LOW)
        async with begun(other, work(database, running, claims)):
            await other.execute(lock, HIGH)
            await other.execute("ROLLBACK; BEGIN")


async def test_rows_are_replayed_in_the_order_of_ids(
    postgres: BusinessDatabase, database: WakingOutboxDatabase
) -> None:
    running, claims = await claimed(postgres, database)
    await running.deliveries.settle([Settlement(claim, Died("no")) for claim in claims])

    async with postgres.connected() as other, other.transaction():
        await other.execute(ROW, LOW)
        async with begun(other, OutboxTable(database).replay([HIGH, LOW], 0, "me")):
            await other.execute(ROW, HIGH)
            await other.execute("ROLLBACK; BEGIN")


async def test_a_claim_that_waits_for_a_registration_holds_no_row(
    postgres: BusinessDatabase, database: WakingOutboxDatabase
) -> None:
    await claimed(postgres, database)
    await expire_leases(postgres)

    async with postgres.connected() as other, other.transaction():
        await other.execute("LOCK TABLE core.outbox_fan_out_lock IN EXCLUSIVE MODE")
        async with begun(other, HandlerVersion(database, attempts=1).claimed()):
            await other.execute(ROW, LOW)
            await other.execute(DELIVERY, LOW)
            await other.execute("ROLLBACK; BEGIN")

    assert await postgres.states() == [("failed",), ("failed",)]


async def test_a_claim_does_not_wait_for_a_row_whose_last_attempt_is_being_settled(
    postgres: BusinessDatabase, database: WakingOutboxDatabase
) -> None:
    await claimed(postgres, database)
    await expire_leases(postgres)

    async with postgres.connected() as other, other.transaction():
        await other.execute(ROW, LOW)
        with anyio.fail_after(DEADLINE_S):
            assert await HandlerVersion(database, attempts=1).claimed() == []

        assert await postgres.states("id, status") == [(HIGH, "failed"), (LOW, "in_flight")]


async def claimed(business: BusinessDatabase, database: WakingOutboxDatabase) -> tuple[HandlerVersion, list[TaskClaim]]:
    """Two events whose only attempt is under way, the one with the higher id first."""
    running = HandlerVersion(database, attempts=1)
    await running.versions.register()
    await business.publish(make_event(1, event_id=HIGH), make_event(2, event_id=LOW))
    tasks: Sequence[Any] = await running.tasks()
    assert len(tasks) == 2
    return running, [task.claim for task in tasks]


@asynccontextmanager
async def begun(other: Any, work: Awaitable[Any]) -> AsyncIterator[None]:
    """Work that has come to where it waits for a lock of another connection; the block lets it go on."""

    async def run() -> None:
        await work

    with anyio.fail_after(DEADLINE_S):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            while await other.fetchval(BLOCKED) == 0:  # noqa: ASYNC110 - there is no event for it
                await anyio.sleep(0.01)
            yield

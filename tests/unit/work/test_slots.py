"""Worker slots: a matcher starts no more than were free, and a worker that stops finishes what was started."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import anyio
import pytest
from anyio.lowlevel import checkpoint

from tape.compose import open_store, run_journal
from tape.core.errors import StaleClaim, Unavailable
from tape.core.event import Event
from tape.core.ports import Queue, Store
from tape.core.task import Claimed, ClaimRequest, Settlement, TaskStatus
from tape.matcher.dispatcher import Dispatcher, WorkerConfig
from tape.matcher.matcher import Matcher
from tape.work.handler import handler
from tape.work.worker import Worker
from tests.contract.reactions import catch_up, publish, reaction, tasks
from tests.deadlines import DEADLINE_S


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    async with open_store("memory://") as store:
        yield store


@asynccontextmanager
async def running(store: Store, slots: int = 2, queue: Queue | None = None) -> AsyncIterator[Worker]:
    """A worker that has found nothing due and waits."""
    worker = Worker(queue or store.tasks, {"rule": handler(lambda: None)}, owner="me", slots=slots)
    with anyio.fail_after(DEADLINE_S):
        async with anyio.create_task_group() as group:
            group.start_soon(worker.run)
            while (request := worker.slots.reserve()) is None:
                await checkpoint()
            worker.slots.start(request, ())
            yield worker
            worker.stop()


async def test_a_slot_is_reserved_once(store: Store) -> None:
    async with running(store) as worker:
        first, second = worker.slots.reserve(), worker.slots.reserve()
        assert first is not None
        worker.slots.start(first, ())
        third = worker.slots.reserve()
        assert third is not None
        worker.slots.start(third, ())

    assert (first.limit, second, third.limit) == (2, None, 2)


async def test_a_worker_that_does_not_run_reserves_nothing(store: Store) -> None:
    async with running(store) as worker:
        worker.stop()
        stopped = worker.slots.reserve()

    assert stopped is None and worker.slots.reserve() is None


async def test_a_worker_that_stops_waits_for_its_reservations(store: Store) -> None:
    await store.reactions.register(reaction())
    async with running(store) as worker:
        request = worker.slots.reserve()
        assert request is not None
        worker.stop()
        for _ in range(10):
            await checkpoint()
        worker.slots.start(request, ())

    assert worker.slots.reserve() is None


class CountingQueue:
    """A queue that counts its claims."""

    def __init__(self, queue: Queue) -> None:
        self.extend, self.settle = queue.extend, queue.settle
        self.claims = 0
        self._queue = queue

    async def claim(self, request: ClaimRequest) -> Claimed:
        self.claims += 1
        return await self._queue.claim(request)


async def test_a_worker_does_not_claim_after_each_task_once_the_queue_is_drained(store: Store) -> None:
    queue = CountingQueue(store.tasks)
    await store.reactions.register(reaction())
    async with running(store, queue=queue) as worker:
        matcher = Matcher(store, on_new_tasks=worker.wake, slots=worker.slots)
        await catch_up(matcher)
        for number in range(20):
            await publish(store, 1)
            await catch_up(matcher)
            while worker.handled == number:
                await checkpoint()

    assert queue.claims < 20 == worker.handled


class InterruptedQueue:
    """A queue that cannot be reached when it is to settle for the first time."""

    def __init__(self, queue: Queue) -> None:
        self.claim, self.extend = queue.claim, queue.extend
        self.is_interrupted = False
        self._queue = queue

    async def settle(self, settlements: Sequence[Settlement]) -> Sequence[StaleClaim | None]:
        if not self.is_interrupted:
            self.is_interrupted = True
            raise Unavailable("the store is away")
        return await self._queue.settle(settlements)


async def test_p12_an_outcome_is_settled_after_an_outage(store: Store) -> None:
    queue = InterruptedQueue(store.tasks)
    await store.reactions.register(reaction())
    async with running(store, queue=queue) as worker:
        await publish(store, 1)
        await catch_up(Matcher(store, on_new_tasks=worker.wake))
        while not queue.is_interrupted or worker.slots.free < 2:
            await checkpoint()

    assert [(task.status, task.attempts) for task in await tasks(store)] == [(TaskStatus.DONE, 1)]


async def test_a_wake_up_while_all_slots_are_reserved_is_not_lost(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tape.work.claiming.POLL_S", 10 * DEADLINE_S)
    await store.reactions.register(reaction())
    async with running(store) as worker:
        request = worker.slots.reserve()
        assert request is not None
        await publish(store, 1)
        await catch_up(Matcher(store, on_new_tasks=worker.wake))
        for _ in range(10):
            await checkpoint()

        worker.slots.start(request, ())
        while worker.handled == 0:
            await checkpoint()

    assert [task.status for task in await tasks(store)] == [TaskStatus.DONE]


async def test_what_is_published_while_a_worker_runs_is_handled_once_within_its_slots(store: Store) -> None:
    at_once, most, seen = 0, 0, []

    async def handle(number: int) -> None:
        nonlocal at_once, most
        at_once, most = at_once + 1, max(most, at_once + 1)
        await checkpoint()
        seen.append(number)
        at_once -= 1

    await store.reactions.register(reaction())
    async with run_journal(store) as journal:
        dispatcher = Dispatcher(store, WorkerConfig(handlers={"rule": handler(handle)}, slots=3), journal)
        with anyio.fail_after(DEADLINE_S):
            async with anyio.create_task_group() as group:
                group.start_soon(dispatcher.run)
                for number in range(50):
                    await journal.append(Event(run_id="r", payload=number, subject="/a/b"), open=True)
                while len(seen) < 50:
                    await checkpoint()
                dispatcher.stop()

    assert sorted(seen) == list(range(50)) and most <= 3
    assert {(task.status, task.attempts) for task in await tasks(store)} == {(TaskStatus.DONE, 1)}


async def test_a_matcher_waits_for_slots_while_handlers_are_quick(store: Store) -> None:
    async with running(store) as worker:
        request = worker.slots.reserve()
        assert request is not None
        async with anyio.create_task_group() as group:
            group.start_soon(worker.slots.wait_for_slots, 2)
            await checkpoint()
            worker.slots.start(request, ())

        after = worker.slots.reserve()
        assert after is not None
        worker.slots.start(after, ())

    assert after.limit == 2


async def test_a_matcher_waits_for_slow_handlers_only_once(store: Store) -> None:
    async with running(store) as worker:
        request = worker.slots.reserve()
        assert request is not None
        await worker.slots.wait_for_slots(1)

        with anyio.CancelScope() as scope:
            scope.cancel()
            await worker.slots.wait_for_slots(1)
        worker.slots.start(request, ())

    assert not scope.cancelled_caught

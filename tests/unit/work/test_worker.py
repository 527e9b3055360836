"""The worker: claims what it can run, runs it, settles it, and finishes it when it is stopped."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import Any

import anyio
import pytest

from tape.compose import open_store
from tape.core.causation import current_cause
from tape.core.ports import Store
from tape.core.task import Task, TaskStatus
from tape.matcher.dispatcher import Dispatcher, WorkerConfig
from tape.work.answers import Dead, Retry
from tape.work.envelope import Envelope
from tape.work.handler import handler
from tests.contract.reactions import expire, publish, reaction, tasks
from tests.deadlines import DEADLINE_S

Function = Callable[..., Any]


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    async with open_store("memory://") as store:
        yield store


def config(functions: Mapping[str, Function], batch: int = 1, **options: Any) -> WorkerConfig:
    handlers = {name: handler(function, batch) for name, function in functions.items()}
    return WorkerConfig(handlers=handlers, owner="me", **options)


@asynccontextmanager
async def working(store: Store, function: Function, **options: Any) -> AsyncIterator[Dispatcher]:
    """A dispatcher that runs during the block, and is then stopped and drained."""
    dispatcher = Dispatcher(store, config({"rule": function}, **options))
    with anyio.fail_after(DEADLINE_S):
        async with anyio.create_task_group() as group:
            group.start_soon(dispatcher.run)
            yield dispatcher
            dispatcher.worker.stop()


async def once(store: Store, function: Function, **options: Any) -> int:
    with anyio.fail_after(DEADLINE_S):
        return await Dispatcher(store, config({"rule": function}, **options)).run_once()


async def ended(store: Store, count: int) -> list[Task]:
    """All tasks, when that many of them have ended."""
    while True:
        found = await tasks(store)
        if sum(task.status in (TaskStatus.DONE, TaskStatus.DLQ) for task in found) >= count:
            return found
        await anyio.sleep(0.01)


async def test_a_handler_is_called_once_for_each_match(store: Store) -> None:
    seen: list[object] = []
    await store.reactions.register(reaction())
    await publish(store, 5)

    count = await once(store, lambda envelope: seen.append(envelope.payload["n"]))

    assert count == 5 and sorted(seen, key=str) == [1, 2, 3, 4, 5]
    assert {task.status for task in await tasks(store)} == {TaskStatus.DONE}


async def test_what_is_published_while_it_runs_is_handled_too(store: Store) -> None:
    seen: list[int] = []

    async def handle(envelope: Envelope) -> None:
        seen.append(envelope.global_seq)

    await store.reactions.register(reaction())
    async with working(store, handle):
        await publish(store, 3)
        await ended(store, 3)

    assert sorted(seen) == [2, 3, 4]


async def test_a_plain_function_runs_in_a_thread_and_an_async_one_in_the_loop(store: Store) -> None:
    threads: list[int] = []

    def plain(envelope: Envelope) -> None:
        threads.append(threading.get_ident())

    async def prompt(envelope: Envelope) -> None:
        threads.append(threading.get_ident())

    await store.reactions.register(reaction("plain"))
    await store.reactions.register(reaction("prompt"))
    await publish(store, 1)
    await Dispatcher(store, config({"plain": plain, "prompt": prompt})).run_once()

    assert sorted(thread == threading.get_ident() for thread in threads) == [False, True]


async def test_an_envelope_is_a_mapping_with_attributes(store: Store) -> None:
    seen: list[Envelope] = []
    await store.reactions.register(reaction())
    await publish(store, 1)

    await once(store, seen.append)

    (envelope,) = seen
    assert (envelope.run_id, envelope.seq, envelope.subject, envelope.attempt) == ("r1", 1, "/a/b", 1)
    assert dict(envelope)["payload"] == {"n": 1} and envelope["reaction_id"] == "rule" and len(envelope) == 14
    with pytest.raises(KeyError):
        envelope["__class__"]


async def test_a_handler_that_raises_is_tried_again_until_it_is_dead(store: Store) -> None:
    attempts: list[int] = []

    def fail(envelope: Envelope) -> None:
        attempts.append(envelope.attempt)
        raise ZeroDivisionError("nothing left")

    await store.reactions.register(reaction(dlq_after_n=2, retry_backoff_ms=0))
    await publish(store, 1)
    await once(store, fail)

    (task,) = await tasks(store)
    assert attempts == [1, 2]
    assert (task.status, task.last_error) == (TaskStatus.DLQ, "ZeroDivisionError: nothing left")


async def test_a_handler_may_ask_for_a_retry_later(store: Store) -> None:
    await store.reactions.register(reaction())
    await publish(store, 1)

    async def busy(envelope: Envelope) -> None:
        raise Retry("busy", after=3600)

    await once(store, busy)

    (task,) = await tasks(store)
    assert (task.status, task.last_error, task.attempts) == (TaskStatus.PENDING, "busy", 1)
    assert task.next_attempt_at_ms - task.created_at_ms > 3_500_000


@pytest.mark.parametrize("is_raised", [True, False])
async def test_a_handler_may_end_its_task_as_dead(store: Store, is_raised: bool) -> None:
    await store.reactions.register(reaction())
    await publish(store, 1)

    def hopeless(envelope: Envelope) -> Dead:
        if is_raised:
            raise Dead("no such account")
        return Dead("no such account")

    await once(store, hopeless)

    (task,) = await tasks(store)
    assert (task.status, task.last_error) == (TaskStatus.DLQ, "no such account")


async def test_it_never_holds_more_leases_than_it_can_run(store: Store) -> None:
    await store.reactions.register(reaction())
    await publish(store, 20)
    most = 0

    async def look(envelope: Envelope) -> None:
        nonlocal most
        claimed = await tasks(store, status=TaskStatus.CLAIMED)
        most = max(most, len(claimed))

    await once(store, look, slots=3)

    assert 1 <= most <= 3


async def test_a_batch_handler_is_given_many_at_once(store: Store) -> None:
    sizes: list[int] = []

    def many(envelopes: list[Envelope]) -> None:
        sizes.append(len(envelopes))

    await store.reactions.register(reaction())
    await publish(store, 10)
    await once(store, many, batch=4, slots=10)

    assert sorted(sizes) == [2, 4, 4]


async def test_a_handler_three_leases_long_keeps_its_lease(store: Store) -> None:
    lease = timedelta(seconds=1)
    renewed: list[int] = []

    async def long(envelope: Envelope) -> None:
        while len(set(renewed)) < 10:  # three heartbeats in a lease
            task = await store.tasks.find(envelope.task_id)
            renewed.append(task.lease_expires_at_ms if task else 0)
            await anyio.sleep(0.05)

    await store.reactions.register(reaction())
    await publish(store, 1)
    await once(store, long, lease=lease)

    (task,) = await tasks(store)
    assert (task.status, task.attempt) == (TaskStatus.DONE, 1)
    assert max(renewed) - min(renewed) >= 2_500


async def test_a_handler_whose_lease_is_lost_is_stopped(store: Store) -> None:
    calls: list[int] = []

    async def stuck(envelope: Envelope) -> None:
        calls.append(envelope.attempt)
        if envelope.attempt == 1:
            await expire(store)
            await anyio.sleep_forever()

    await store.reactions.register(reaction(max_concurrency=1))
    await publish(store, 1)
    async with working(store, stuck, lease=timedelta(seconds=1)):
        (task,) = await ended(store, 1)

    assert calls == [1, 2] and task.status is TaskStatus.DONE


async def test_a_lost_lease_stops_its_own_work_and_no_other(store: Store) -> None:
    calls: list[tuple[int, int]] = []

    async def stuck(envelope: Envelope) -> None:
        calls.append((envelope.seq, envelope.attempt))
        if calls[-1] == (1, 1):
            await ended(store, 2)
            await expire(store)
            await anyio.sleep_forever()

    await store.reactions.register(reaction())
    await publish(store, 3)
    async with working(store, stuck, lease=timedelta(seconds=1)):
        await ended(store, 3)

    assert sorted(calls) == [(1, 1), (1, 2), (2, 1), (3, 1)]


async def test_a_worker_task_goes_on_after_a_handler_that_ignores_its_cancellation(store: Store) -> None:
    calls: list[tuple[int, int]] = []

    async def stubborn(envelope: Envelope) -> None:
        calls.append((envelope.seq, envelope.attempt))
        if envelope.attempt == 1:
            await expire(store)
            with suppress(asyncio.CancelledError):
                await anyio.sleep_forever()

    await store.reactions.register(reaction())
    await publish(store, 2)
    async with working(store, stubborn, lease=timedelta(seconds=1), slots=1):
        found = await ended(store, 2)

    assert {seq for seq, _ in calls} == {1, 2} and len(calls) == len({*calls})
    assert {task.status for task in found} == {TaskStatus.DONE}


async def test_a_handler_that_was_cancelled_by_what_it_called_has_failed_like_any_other(store: Store) -> None:
    calls: list[int] = []

    async def cancelled(envelope: Envelope) -> None:
        calls.append(envelope.attempt)
        if envelope.attempt == 1:
            raise asyncio.CancelledError

    await store.reactions.register(reaction(retry_backoff_ms=0))
    await publish(store, 1)
    async with working(store, cancelled):
        (task,) = await ended(store, 1)

    assert calls == [1, 2] and task.status is TaskStatus.DONE


async def test_stopping_waits_for_what_was_begun_and_claims_nothing_more(store: Store) -> None:
    is_begun, may_end = anyio.Event(), anyio.Event()

    async def slow(envelope: Envelope) -> None:
        is_begun.set()
        await may_end.wait()

    await store.reactions.register(reaction())
    await publish(store, 3)
    async with working(store, slow, slots=1) as dispatcher:
        await is_begun.wait()
        dispatcher.worker.stop()
        may_end.set()

    assert sorted(task.status for task in await tasks(store)) == [TaskStatus.PENDING] * 2 + [TaskStatus.DONE]


async def test_what_a_handler_appends_is_caused_by_its_entry(store: Store) -> None:
    causes: list[object] = []
    await store.reactions.register(reaction())
    await publish(store, 1)

    await once(store, lambda: causes.append(current_cause()))

    assert causes == [2] and current_cause() is None

"""Deadlines: an attempt that hangs is ended and counted, and its worker goes on."""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import anyio
import pytest

from tape.core.ports import Store
from tape.core.task import Task, TaskStatus
from tape.matcher.dispatcher import Dispatcher, WorkerConfig
from tape.work.collected import Collection
from tape.work.envelope import Envelope
from tape.work.handler import handler
from tape.work.options import definition
from tests.contract.backends import needs_ledgers
from tests.contract.reactions import publish, reaction, tasks
from tests.deadlines import DEADLINE_S
from tests.process import hanging_handlers as hanging

pytestmark = needs_ledgers

BRIEF = timedelta(milliseconds=50)
AMPLE = timedelta(seconds=1)  # for a thread that does nothing, also on a busy machine
TIMEOUTS = timedelta(seconds=DEADLINE_S)


@asynccontextmanager
async def working(store: Store, function: Any, deadline: timedelta = BRIEF) -> AsyncIterator[None]:
    """A worker with this deadline, during the block."""
    await store.reactions.register(reaction(dlq_after_n=1))
    made = handler(function, timeout=deadline)
    dispatcher = Dispatcher(store, WorkerConfig(handlers={"rule": made}, owner="me", slots=1))
    with anyio.fail_after(DEADLINE_S):
        async with anyio.create_task_group() as group:
            group.start_soon(dispatcher.run)
            yield
            dispatcher.stop()


async def ended(store: Store, count: int) -> list[Task]:
    while True:
        found = [task for task in await tasks(store) if task.status in (TaskStatus.DONE, TaskStatus.DLQ)]
        if len(found) == count:
            return found
        await anyio.sleep(0.01)


async def test_an_async_handler_that_hangs_is_cancelled_and_has_failed(store: Store) -> None:
    async def hang() -> None:
        await anyio.sleep_forever()

    async with working(store, hang):
        await publish(store, 1)
        (task,) = await ended(store, 1)

    assert (task.status, task.attempts) == (TaskStatus.DLQ, 1)
    assert task.last_error == "TimeoutError: it took longer than its deadline of 0.05 s"


async def test_a_thread_that_hangs_gives_its_slot_to_the_next_task(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    may_end = threading.Event()

    def hang_once(envelope: Envelope) -> None:
        if envelope.seq < 3:
            may_end.wait(DEADLINE_S)

    with caplog.at_level(logging.WARNING):
        async with working(store, hang_once, AMPLE):
            await publish(store, 3)
            found = await ended(store, 3)
            may_end.set()
            while len(named(caplog, "task.thread_ended")) < 2:  # noqa: ASYNC110 - only the log tells
                await anyio.sleep(0.01)

    assert [task.status for task in found] == [TaskStatus.DLQ, TaskStatus.DLQ, TaskStatus.DONE]
    assert named(caplog, "task.thread_detached") == [found[0].task_id, found[1].task_id]


async def test_a_handler_that_ignores_its_cancellation_is_detached(
    store: Store, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("attempt", "handler_tasks"):
        monkeypatch.setattr(f"tape.work.{module}.END_S", 0.05)
    may_end = anyio.Event()

    async def ignore(envelope: Envelope) -> None:
        while envelope.seq == 1 and not may_end.is_set():
            try:
                await may_end.wait()
            except BaseException:
                continue

    async with working(store, ignore):
        await publish(store, 2)
        first, second = await ended(store, 2)
    may_end.set()

    assert (first.status, second.status) == (TaskStatus.DLQ, TaskStatus.DONE)
    assert named(caplog, "task.handler_detached") == [first.task_id]


@pytest.mark.parametrize("is_waiting", [True, False])
async def test_a_handler_that_cancels_its_own_task_has_failed_or_is_done(store: Store, is_waiting: bool) -> None:
    async def cancel_itself(envelope: Envelope) -> None:
        task = asyncio.current_task()
        if envelope.seq == 1 and task is not None:
            task.cancel()
            if is_waiting:
                await anyio.sleep_forever()

    async with working(store, cancel_itself, TIMEOUTS):
        await publish(store, 2)
        first, second = await ended(store, 2)

    assert first.status is (TaskStatus.DLQ if is_waiting else TaskStatus.DONE)
    assert second.status is TaskStatus.DONE


async def test_a_timeout_is_registered_with_its_reaction(store: Store) -> None:
    collection = Collection()
    collection.add(hanging.in_thread, 1, definition("/a/**", {"reaction_id": "rule", "timeout": 2.5}))

    await Dispatcher(store, WorkerConfig(handlers={}, reactions=tuple(each.reaction for each in collection))).register()

    found = await store.reactions.find("rule")
    assert found is not None and found.reaction.timeout_ms == 2_500
    assert collection.handlers["rule"].timeout == timedelta(seconds=2.5)


def named(caplog: pytest.LogCaptureFixture, event: str) -> list[object]:
    """The task ids in the log lines of an event."""
    found = [getattr(record, "facts", {}) for record in caplog.records if record.getMessage() == event]
    return [facts["task_id"] for facts in found]

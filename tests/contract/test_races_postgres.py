"""Several nodes at once on Postgres: limits hold, and nothing deadlocks."""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import NoReturn

import anyio
import pytest

from tape.compose import open_store, run_journal
from tape.core.background import background
from tape.core.event import Event
from tape.core.ports import Store
from tape.core.task import TaskStatus
from tape.matcher.dispatcher import Dispatcher, WorkerConfig
from tape.work.envelope import Envelope
from tape.work.handler import handler
from tests.conftest import Scale
from tests.contract.reactions import match, publish, reaction, sources, tasks
from tests.deadlines import DEADLINE_S

HELD = "SELECT 1 FROM tape_tasks WHERE task_id = :task_id FOR UPDATE"
WAITING = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


@pytest.fixture
async def store(postgres_url: str) -> AsyncIterator[Store]:
    async with open_store(postgres_url) as store:
        yield store


class Counted:
    """Records what two nodes handle, and how much of it at once."""

    def __init__(self) -> None:
        self.at_once = self.most = 0
        self.attempts: Counter[tuple[int, int]] = Counter()

    async def handle(self, envelope: Envelope) -> None:
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        await anyio.sleep(0.002)
        self.at_once -= 1
        self.attempts[envelope.global_seq, envelope.attempt] += 1
        if envelope.global_seq % 7 == 0 and envelope.attempt == 1:
            raise ZeroDivisionError

    async def node(self, url: str, run_id: str, count: int) -> None:
        """Publishes this many events one by one, and works until all are done."""
        async with open_store(url) as store, run_journal(store) as journal:
            dispatcher = Dispatcher(store, WorkerConfig(handlers={"rule": handler(self.handle)}, slots=4), journal)
            async with background(partial(forever, dispatcher.run)):
                for number in range(count):
                    await journal.append(Event(run_id=run_id, payload=number, subject="/a/b"), open=True)
                while len(await sources(store, status=TaskStatus.DONE)) < 2 * count:  # noqa: ASYNC110 - only asking can tell
                    await anyio.sleep(0.05)


async def forever(run: Callable[[], Awaitable[object]]) -> NoReturn:
    await run()
    raise AssertionError("it was not stopped")


async def test_p13_limits_hold_while_two_nodes_say_and_do_and_a_third_meddles(
    store: Store, postgres_url: str, scale: Scale
) -> None:
    counted, count = Counted(), scale(100)
    await store.reactions.register(reaction(max_concurrency=2, retry_backoff_ms=1))
    with anyio.fail_after(DEADLINE_S):
        async with anyio.create_task_group() as group:
            group.start_soon(counted.node, postgres_url, "one", count)
            group.start_soon(counted.node, postgres_url, "two", count)
            for turn in range(scale(20)):
                await store.reactions.pause("rule", "lunch")
                shards, most = 1 + turn % 5, 2 + turn % 2
                await store.reactions.register(reaction(max_concurrency=most, num_shards=shards, retry_backoff_ms=1))
                await store.reactions.resume("rule")

    assert counted.most <= 3 and set(counted.attempts.values()) == {1}
    assert {(task.status, task.attempts) for task in await tasks(store) if task.source_global_seq % 7} == {
        (TaskStatus.DONE, 1)
    }


async def test_who_changes_shards_and_who_settles_never_wait_in_a_ring(store: Store, postgres_url: str) -> None:
    await store.reactions.register(reaction())
    await publish(store, 2)
    await match(store)
    first, second = await tasks(store)

    with anyio.fail_after(DEADLINE_S):
        async with anyio.create_task_group() as group, store.transaction() as tx:
            await tx.fetch(HELD, {"task_id": second.task_id})
            group.start_soon(store.reactions.register, reaction(num_shards=4))
            while not await tx.fetch(WAITING, {}):  # noqa: ASYNC110 - only asking can tell
                await anyio.sleep(0.01)
            await tx.fetch(HELD, {"task_id": first.task_id})

    found = await store.reactions.find("rule")
    assert found is not None and found.reaction.num_shards == 4

"""The remote queue of tasks: it has the same guarantees as the store's."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from tape.bus.journal import Journal
from tape.core.errors import StaleClaim, UsageError
from tape.core.ports import Store
from tape.core.task import ClaimRequest, Died, Done, Failed, Released, Settlement, TaskClaim, TaskStatus
from tape.sdk.remote.channel import Channel
from tape.sdk.remote.dispatcher import Tasks
from tests.contract.backends import needs_ledgers
from tests.contract.reactions import LONG, match, publish, reaction, tasks
from tests.contract.serving import served

pytestmark = needs_ledgers


@pytest.fixture
async def remote(store: Store, journal: Journal) -> AsyncIterator[Tasks]:
    async with served(store, journal) as url, Channel(url) as channel:
        yield Tasks(channel)


async def test_a_reaction_is_registered_as_it_is(store: Store, remote: Tasks) -> None:
    wanted = reaction(name="sold", predicate_cel="payload.n > 1", retry_backoff_ms=5, num_shards=4)

    assert await remote.register(wanted) == wanted
    found = await store.reactions.find("rule")
    assert found is not None and found.reaction == wanted


async def test_a_reaction_that_is_never_retried_stays_one(remote: Tasks) -> None:
    known = await remote.register(reaction(retry_max=0, retry_backoff_ms=0))

    assert (known.max_attempts, known.retry_backoff_ms) == (1, 1)


async def test_a_claim_gives_the_tasks_as_the_store_has_them(store: Store, remote: Tasks) -> None:
    for name in ("one", "two", "three"):
        await remote.register(reaction(name))
    await publish(store, 2)
    await match(store)

    claimed = await remote.claim(ClaimRequest(owner="me", limit=10, reaction_ids=("one", "two"), lease=LONG))

    there = [task for task in await tasks(store) if task.status is TaskStatus.CLAIMED]
    assert sorted(claimed.tasks, key=lambda task: (task.reaction_id, task.source_global_seq)) == there
    assert {task.reaction_id for task in there} == {"one", "two"} and len(there) == 4


async def test_a_remote_worker_releases_a_task(store: Store, remote: Tasks) -> None:
    await remote.register(reaction())
    await publish(store, 1)
    await match(store)
    (task,) = (await remote.claim(ClaimRequest(owner="me", lease=LONG))).tasks

    answers = await remote.settle([Settlement(task.claim, Released())])

    (left,) = await tasks(store)
    assert (answers, left.status, left.attempts) == ([None], TaskStatus.PENDING, 0)


async def test_each_settlement_gets_its_own_answer(store: Store, remote: Tasks) -> None:
    await remote.register(reaction())
    await publish(store, 4)
    await match(store)
    done, failed, died, lost = (await remote.claim(ClaimRequest(owner="me", limit=4, lease=LONG))).tasks

    answers = await remote.settle(
        [
            Settlement(done.claim, Done()),
            Settlement(failed.claim, Failed("not now", timedelta(hours=1))),
            Settlement(died.claim, Died("poison")),
            Settlement(TaskClaim(lost.task_id, "me", lost.attempt + 1), Done()),
        ]
    )
    claimed = await remote.claim(ClaimRequest(owner="me"))

    statuses = [task.status for task in await tasks(store)]
    assert [type(answer) for answer in answers] == [type(None), type(None), type(None), StaleClaim]
    assert statuses == [TaskStatus.DONE, TaskStatus.PENDING, TaskStatus.DLQ, TaskStatus.CLAIMED]
    assert claimed.more_after is not None and claimed.more_after > timedelta(0)


async def test_a_heartbeat_extends_what_is_held_and_no_other(store: Store, remote: Tasks) -> None:
    await remote.register(reaction())
    await publish(store, 1)
    await match(store)
    (task,) = (await remote.claim(ClaimRequest(owner="me", lease=timedelta(seconds=30)))).tasks

    claims = [task.claim, TaskClaim(task.task_id, "other", task.attempt)]
    mine, others = await remote.extend(claims, timedelta(minutes=10))

    assert mine is None and isinstance(others, StaleClaim)
    assert (await tasks(store))[0].lease_expires_at_ms > task.lease_expires_at_ms


async def test_what_makes_no_sense_is_refused(remote: Tasks) -> None:
    with pytest.raises(UsageError):
        await remote.register(reaction(predicate_cel="1 +"))

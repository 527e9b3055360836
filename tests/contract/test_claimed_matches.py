"""Tasks claimed as they are matched: within all limits, behind older tasks, and only for the matcher's worker."""

import anyio
import pytest

from tape.core.event import Event
from tape.core.ports import Store
from tape.core.task import Done, Settlement, TaskStatus
from tape.matcher.matcher import Matcher
from tests.conftest import Scale
from tests.contract.backends import needs_ledgers
from tests.contract.events import append, make_event
from tests.contract.reactions import (
    RecordingSlots,
    catch_up,
    claim,
    match,
    publish,
    reaction,
    repeatedly,
    settle,
    tasks,
)

pytestmark = needs_ledgers


async def matched(store: Store, slots: RecordingSlots) -> list[int]:
    """The positions of the tasks that the slots got once everything was matched."""
    await catch_up(Matcher(store, slots=slots))
    return [task.source_global_seq for task in slots.started]


async def test_a_started_task_is_claimed_like_any_other(store: Store) -> None:
    slots = RecordingSlots()
    await store.reactions.register(reaction(num_shards=4))
    await publish(store, 3)

    started = await matched(store, slots)

    assert started == [2, 3, 4] and await tasks(store) == slots.started
    assert await claim(store) == []
    assert [await settle(store, task) for task in slots.started] == [None, None, None]


@pytest.mark.parametrize("count", [1, 2, 100])
async def test_a_started_task_equals_its_row(store: Store, count: int) -> None:
    slots = RecordingSlots(1_000, "rule", "other")
    matcher = Matcher(store, slots=slots)
    for each in (reaction(num_shards=4), reaction("other", "/a/1/**")):
        await store.reactions.register(each)
    await catch_up(matcher)
    unlike = (make_event(f"r{n % 7}", n, subject=f"/a/{n % 3}", type=f"t{n % 2}") for n in range(count))

    changed = Event(run_id="r8", kind="value", type="set", payload={"prev_value_json": "a\x1fb"}, subject="/a/2")
    blob = Event(run_id="r9", payload=b"\x1f", content_type="application/octet-stream", subject="/a/1")
    await append(store, *unlike, changed, blob)
    await catch_up(matcher)

    assert sorted(slots.started, key=lambda task: (task.reaction_id, task.source_global_seq)) == await tasks(store)
    assert len(slots.started) == count + 2 + len(range(1, count, 3)) + 1


async def test_matches_of_many_pages_are_started_in_order(store: Store) -> None:
    slots = RecordingSlots(5_000)
    await store.reactions.register(reaction(max_concurrency=5_000))
    await publish(store, 700)
    await publish(store, 700)

    started = await matched(store, slots)

    assert started == [task.source_global_seq for task in await tasks(store)] == list(range(2, 1_402))


async def test_many_are_settled_together_and_each_gets_its_own_answer(store: Store) -> None:
    slots = RecordingSlots()
    await store.reactions.register(reaction())
    await publish(store, 3)
    await matched(store, slots)
    claims = [task.claim for task in slots.started]
    stale = claims[1]._replace(attempt=2)

    answers = await store.tasks.settle([Settlement(each, Done()) for each in (claims[0], stale, claims[2])])

    assert [answer is None for answer in answers] == [True, False, True]
    assert [task.status for task in await tasks(store)] == [TaskStatus.DONE, TaskStatus.CLAIMED, TaskStatus.DONE]
    assert list(await store.tasks.settle([])) == []


@pytest.mark.parametrize(
    ("options", "started"),
    [
        ({"max_concurrency": 2}, [2, 3]),
        ({"rate_limit_per_s": 50}, []),
        ({"debounce_ms": 60_000}, []),
    ],
)
async def test_limits_hold_for_tasks_claimed_as_they_are_matched(
    store: Store, options: dict[str, object], started: list[int]
) -> None:
    await store.reactions.register(reaction(**options))  # type: ignore[arg-type]
    await publish(store, 3)

    assert await matched(store, RecordingSlots()) == started


async def test_leases_of_other_workers_count_towards_the_limit(store: Store) -> None:
    await store.reactions.register(reaction(max_concurrency=2))
    await publish(store, 1)
    await match(store)
    held = await claim(store)
    await publish(store, 3)

    started = await matched(store, RecordingSlots())

    assert len(held) == len(started) == 1


async def test_p13_tasks_claimed_from_an_earlier_page_count_towards_the_limit(store: Store) -> None:
    await store.reactions.register(reaction(max_concurrency=3))
    matcher = Matcher(store, slots=(slots := RecordingSlots()))

    for _ in range(2):
        await publish(store, 2)
        await catch_up(matcher)

    assert [task.source_global_seq for task in slots.started] == [2, 3, 4]


async def test_older_pending_tasks_go_first(store: Store) -> None:
    await store.reactions.register(reaction())
    await publish(store, 1)
    await match(store)
    await publish(store, 1)

    assert await matched(store, RecordingSlots()) == []
    assert [task.source_global_seq for task in await claim(store)] == [2, 3]


async def test_tasks_of_other_reactions_are_not_claimed(store: Store) -> None:
    await store.reactions.register(reaction())
    await store.reactions.register(reaction("other"))
    await publish(store, 2)

    started = await matched(store, RecordingSlots(3))

    assert {task.status for task in await tasks(store, "other")} == {TaskStatus.PENDING}
    assert 1 <= len(started) <= 2 and len(await tasks(store, "rule")) == 2


async def test_no_more_is_claimed_than_was_requested(store: Store) -> None:
    await store.reactions.register(reaction())
    await publish(store, 5)

    assert await matched(store, RecordingSlots(2)) == [2, 3]


async def test_p10_and_p13_hold_for_many_matchers_with_slots(store: Store, scale: Scale) -> None:
    await store.reactions.register(reaction(max_concurrency=7))
    count, workers = scale(150), [RecordingSlots(5) for _ in range(4)]

    async def publishing() -> None:
        for _ in range(count):
            await publish(store, 1)

    async with anyio.create_task_group() as group:
        group.start_soon(publishing)
        for slots in workers:
            group.start_soon(repeatedly, Matcher(store, slots=slots), count)
    await match(store)

    started = [task.source_global_seq for slots in workers for task in slots.started]
    assert len(started) == len(set(started)) <= 7
    assert [task.source_global_seq for task in await tasks(store)] == list(range(2, 2 + count))

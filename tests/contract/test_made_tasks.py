"""Tasks of a backfill: however many processes insert them, each exists once."""

import anyio
import pytest

from tape.core.errors import NotFound
from tape.core.event import Event
from tape.core.ports import Store
from tape.core.task import Match, TaskStatus
from tape.matcher.matcher import Matcher
from tests.contract.backends import needs_ledgers
from tests.contract.events import append
from tests.contract.reactions import RecordingSlots, catch_up, claim, match, publish, reaction, settle, sources, tasks

pytestmark = needs_ledgers

HUGE = "x" * 1_000_000


@pytest.mark.parametrize("debounce_ms", [0, 60_000])
async def test_several_that_make_the_same_tasks_at_once_make_each_once(store: Store, debounce_ms: int) -> None:
    entries = [(await publish(store, 1, f"/a/{number}"))[0] for number in range(40)]
    rule, made = reaction(bootstrap_from_head=True, debounce_ms=debounce_ms), []
    await store.reactions.register(rule)
    await match(store)

    async def make() -> None:
        for begin in range(0, len(entries), 10):
            made.append(await store.tasks.make([Match(rule, entry) for entry in entries[begin : begin + 10]]))

    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(make)

    assert sum(made) == len(entries)
    assert await sources(store) == [entry.global_seq for entry in entries]


@pytest.mark.parametrize("slots", [None, RecordingSlots()], ids=["pending", "claimed"])
async def test_p10_a_match_whose_task_was_done_in_another_shard_gets_no_second_one(
    store: Store, slots: RecordingSlots | None
) -> None:
    await store.reactions.register(reaction())
    (entry,) = await publish(store, 1)
    await store.tasks.make([Match(reaction(), entry)])  # before the matcher gets there
    (task,) = await claim(store)
    await settle(store, task)

    await store.reactions.register(reaction(num_shards=1_000))
    await catch_up(Matcher(store, slots=slots))

    (left,) = await tasks(store)
    assert (left.source_global_seq, left.status, left.shard) == (entry.global_seq, TaskStatus.DONE, 0)


async def test_tasks_of_huge_entries_are_made_like_any_other(store: Store) -> None:
    entries = await append(store, *(Event(run_id="r1", payload=HUGE, subject=f"/a/{n}") for n in range(7)))
    rule = reaction(bootstrap_from_head=True)
    await store.reactions.register(rule)
    await match(store)

    assert await store.tasks.make([Match(rule, entry) for entry in entries]) == len(entries)
    assert await sources(store) == [entry.global_seq for entry in entries]


async def test_a_reaction_that_was_removed_meanwhile_gets_no_tasks(store: Store) -> None:
    (entry,) = await publish(store, 1)
    rule = reaction(bootstrap_from_head=True)
    await store.reactions.register(rule)
    await store.reactions.remove("rule")

    with pytest.raises(NotFound, match="was removed"):
        await store.tasks.make([Match(rule, entry)])

    assert await sources(store) == []

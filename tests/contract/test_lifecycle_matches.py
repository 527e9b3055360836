"""Reactions to what becomes of reactions and their tasks: only by name, and only one level deep."""

import pytest

from tape.bus.journal import Journal
from tape.core.event import Entry
from tape.core.ports import Store
from tape.core.task import Died, TaskStatus
from tape.matcher.explain import explain, task_detail
from tests.contract.backends import needs_ledgers
from tests.contract.reactions import claim, match, publish, reaction, settle, sources, tasks

pytestmark = needs_ledgers

EVERYTHING = ["/**", "/*/**", "/tape/**", "/*/*/**", "/tape/*/**", "/*/task/**", "/*/reaction/**", "/tape/*/*/*/*"]


async def kept(journal: Journal, pattern: str) -> list[Entry]:
    return [entry async for entry in journal.stream(subject=pattern, follow=False)]


async def die(store: Store) -> None:
    """Ends every task there is as dead, and matches what follows."""
    for task in await claim(store):
        await settle(store, task, Died("no such account"))
    await match(store)


async def test_reactions_to_everything_do_not_multiply_each_others_dead_tasks(store: Store, journal: Journal) -> None:
    for number in range(12):
        await store.reactions.register(reaction(f"rule{number}", "/**"))
    await publish(store, 1)
    await match(store)
    for number in range(9):
        await store.reactions.remove(f"rule{number}")
        await match(store)

    assert await sources(store) == [13] * 12
    assert await journal.head() == 12 + 1 + 9


async def test_a_removal_is_one_entry_that_says_how_many_tasks_it_ended(store: Store, journal: Journal) -> None:
    await store.reactions.register(reaction())
    await publish(store, 3)
    await match(store)

    await store.reactions.remove("rule")
    await match(store)

    (removed,) = [entry async for entry in journal.stream(from_global_seq=4, follow=False)]
    assert removed.payload == {"reaction_id": "rule", "ended_tasks": 3}


async def test_the_life_of_a_task_that_a_removal_ended_has_the_removal(store: Store, journal: Journal) -> None:
    await store.reactions.register(reaction())
    await publish(store, 1)
    await match(store)
    await store.reactions.remove("rule")
    (task,) = await tasks(store, status=TaskStatus.DLQ)
    await store.tasks.replay([task.task_id])
    await store.reactions.register(reaction())
    await die(store)

    (task,) = await tasks(store)

    assert [entry.type for entry in (await task_detail(journal, task)).life] == ["removed", "replayed", "dead"]


async def test_the_life_of_a_task_that_waits_again_ends_with_its_replay(store: Store, journal: Journal) -> None:
    await store.reactions.register(reaction())
    await publish(store, 1)
    await match(store)
    await store.reactions.remove("rule")
    (task,) = await tasks(store, status=TaskStatus.DLQ)
    await store.tasks.replay([task.task_id])

    (task,) = await tasks(store)

    assert [entry.type for entry in (await task_detail(journal, task)).life] == ["removed", "replayed"]


@pytest.mark.parametrize("pattern", EVERYTHING)
async def test_a_pattern_that_does_not_name_lifecycle_subjects_matches_none(
    store: Store, journal: Journal, pattern: str
) -> None:
    await store.reactions.register(reaction())
    await store.reactions.register(reaction("wide", pattern, predicate_cel="kind in ['task', 'reaction']"))
    await store.reactions.register(reaction("wider", pattern))
    await publish(store, 1)
    await match(store)
    await die(store)
    (dead, *_) = await kept(journal, "/tape/task/**")

    assert [place for name in ("wide", "wider") for place in await sources(store, name) if place != 4] == []
    assert (await explain(store, journal, "wide", dead.global_seq)).outcome == "other_subject"


async def test_a_pattern_that_names_lifecycle_subjects_matches_them(store: Store, journal: Journal) -> None:
    await store.reactions.register(reaction("deaths", "/tape/task/*/rule/**"))
    await store.reactions.register(reaction("changes", "/tape/reaction/**"))
    await store.reactions.register(reaction())
    await publish(store, 1)
    await match(store)
    await die(store)

    (dead, *_) = await kept(journal, "/tape/task/dead/rule/**")

    assert await sources(store, "deaths") == [dead.global_seq]
    assert await sources(store, "changes") == [1, 2, 3]
    assert (await explain(store, journal, "deaths", dead.global_seq)).outcome == "task"


async def test_no_reaction_matches_the_death_of_a_task_that_was_about_a_lifecycle_entry(
    store: Store, journal: Journal
) -> None:
    for number in range(3):
        await store.reactions.register(reaction(f"deaths{number}", "/tape/task/**"))
    await store.reactions.register(reaction())
    await publish(store, 1)
    await match(store)

    for _ in range(3):
        await die(store)

    first, *others = await kept(journal, "/tape/task/dead/**")
    assert await sources(store) == [first.global_seq] * 3 + [5] and len(others) == 3
    assert (await explain(store, journal, "deaths1", others[0].global_seq)).outcome == "other_subject"


async def test_a_replayed_task_about_a_lifecycle_entry_is_not_matched_either(store: Store) -> None:
    await store.reactions.register(reaction("changes", "/tape/reaction/**"))
    await store.reactions.register(reaction("deaths", "/tape/task/**"))
    await match(store)
    await die(store)

    await store.tasks.replay([task.task_id for task in await tasks(store, "changes")])
    await match(store)

    assert await sources(store, "deaths") == []


async def test_a_stream_by_pattern_has_lifecycle_entries(store: Store, journal: Journal) -> None:
    await store.reactions.register(reaction())
    await publish(store, 1)
    await match(store)
    await die(store)

    assert [entry.type for entry in await kept(journal, "/**")] == ["registered", "message", "dead"]

"""Explain: what the matcher did with an entry, and why."""

from collections import Counter
from collections.abc import Awaitable, Callable
from random import Random

import pytest

from tape.bus.journal import Journal
from tape.core.errors import NotFound
from tape.core.event import Event
from tape.core.explanation import MatchOutcome
from tape.core.ports import Store
from tape.core.task import MAX_DEPTH, Died, Done, Match, Settlement, TaskStatus
from tape.matcher.explain import explain
from tape.matcher.matcher import Matcher
from tests.conftest import Scale
from tests.contract.backends import needs_ledgers
from tests.contract.events import append, make_event
from tests.contract.reactions import catch_up, claim, expire, match, publish, reaction, settle, tasks

pytestmark = needs_ledgers

PATTERNS = ["/a/**", "/a/*", "/b/c", "/**", "/tape/reaction/**"]
PREDICATES = ["", "payload.n > 2", "payload.n > 1 && type == 'message'", "payload.missing == 1", "seq % 2 == 0"]


async def test_a_match_is_explained_with_its_definition_its_parts_and_the_history_of_its_task(
    store: Store, journal: Journal
) -> None:
    await store.reactions.register(reaction(predicate_cel="payload.n > 1", retry_max=0))
    await publish(store, 2)
    await match(store)
    (claimed,) = await claim(store)
    await settle(store, claimed, Died("no such account"))

    found = await explain(store, journal, "rule", 3)

    assert found.outcome is MatchOutcome.TASK and found.task is not None and found.task.status is TaskStatus.DLQ
    assert [(part.text, part.value) for part in found.judgement.parts] == [
        ("payload.n > 1", "true"),
        ("payload.n", "2"),
    ]
    assert [entry.type for entry in found.life] == ["dead"]
    assert [entry.type for entry in found.registrations] == ["registered"]


@pytest.mark.parametrize(
    ("place", "outcome"),
    [
        (2, MatchOutcome.NO_MATCH),
        (4, MatchOutcome.OTHER_SUBJECT),
        (5, MatchOutcome.PREDICATE_ERROR),
        (7, MatchOutcome.NOT_ACTIVE),
    ],
)
async def test_an_entry_without_a_task_is_explained_with_the_reason(
    store: Store, journal: Journal, place: int, outcome: MatchOutcome
) -> None:
    await store.reactions.register(reaction(predicate_cel="payload.n > 1"))
    await publish(store, 2)
    await publish(store, 1, "/b")
    await append(store, Event(run_id="r1", payload={}, subject="/a/b"))
    await store.reactions.pause("rule", "maintenance")
    await publish(store, 1)
    await match(store)

    found = await explain(store, journal, "rule", place)

    assert found.outcome is outcome and found.task is None


async def test_an_entry_not_matched_yet_differs_from_one_whose_task_was_deleted(store: Store, journal: Journal) -> None:
    await store.reactions.register(reaction())
    await publish(store, 1)
    before = await explain(store, journal, "rule", 2)
    await match(store)
    await settle(store, (await claim(store))[0])
    await store.tasks.forget(before_ms=1 << 60)

    after = await explain(store, journal, "rule", 2)

    assert (before.outcome, after.outcome) == (MatchOutcome.NOT_YET, MatchOutcome.FORGOTTEN)


async def test_a_debounced_match_is_explained_with_the_task_that_replaced_it(store: Store, journal: Journal) -> None:
    await store.reactions.register(reaction(debounce_ms=60_000))
    await publish(store, 3)
    await match(store)

    found = [await explain(store, journal, "rule", place) for place in (2, 4)]

    assert [each.outcome for each in found] == [MatchOutcome.COALESCED, MatchOutcome.TASK]
    assert found[0].task == found[1].task and found[0].judgement.definition.debounce_ms == 60_000


async def test_a_deleted_task_is_not_explained_as_part_of_a_newer_one(store: Store, journal: Journal) -> None:
    await store.reactions.register(reaction(debounce_ms=60_000))
    for _ in range(2):
        await publish(store, 1)
        await match(store)
        await expire(store)
        await settle(store, (await claim(store))[0])
        await store.tasks.forget(before_ms=1 << 60)
    await publish(store, 1)
    await match(store)

    found = [(await explain(store, journal, "rule", place)).outcome for place in (2, 3, 4)]

    assert found == [MatchOutcome.FORGOTTEN, MatchOutcome.FORGOTTEN, MatchOutcome.TASK]


async def test_a_deleted_task_is_not_one_of_those_that_a_newer_task_has_counted(store: Store, journal: Journal) -> None:
    await store.reactions.register(reaction(debounce_ms=60_000, predicate_cel="payload.n != 3"))
    await publish(store, 1)
    await match(store)
    await finish(store)
    await publish(store, 4)
    await match(store)

    found = [(await explain(store, journal, "rule", place)).outcome for place in range(2, 7)]

    assert found == [
        MatchOutcome.FORGOTTEN,
        MatchOutcome.COALESCED,
        MatchOutcome.COALESCED,
        MatchOutcome.NO_MATCH,
        MatchOutcome.TASK,
    ]


async def test_a_task_of_its_own_between_a_match_and_the_task_it_went_into_is_passed_over(
    store: Store, journal: Journal
) -> None:
    await store.reactions.register(reaction(debounce_ms=60_000))
    await publish(store, 1)
    await append(store, Event(run_id="r1", payload={}, subject="/a/b", cause=await deep(store)))
    await publish(store, 1)
    await match(store)

    found = await explain(store, journal, "rule", 2)

    assert found.outcome is MatchOutcome.COALESCED and found.task is not None and found.task.coalesced == 1


async def deep(store: Store) -> int:
    """The end of a chain that is as long as a chain may be, without anything that matches."""
    place = None
    for _ in range(MAX_DEPTH):
        (entry,) = await append(store, Event(run_id="r2", payload={}, subject="/b", cause=place))
        place = entry.global_seq
    assert place is not None
    return place


async def work(store: Store) -> None:
    """Matches all entries and settles their tasks."""
    await match(store)
    await expire(store)
    while claimed := await claim(store, limit=1_000):
        await store.tasks.settle([Settlement(task.claim, Done()) for task in claimed])


async def finish(store: Store) -> None:
    """Settles all tasks and deletes them."""
    await expire(store)
    for task in await claim(store):
        await settle(store, task)
    await store.tasks.forget(before_ms=1 << 60)


async def test_as_many_entries_are_explained_as_coalesced_as_a_task_has_counted(store: Store, journal: Journal) -> None:
    random, names = Random(5), ["rule0", "rule1", "rule2"]
    await live(store, random, names, steps=30, debounce_ms=60_000, sometimes=lambda: finish(store))
    counted = {task.task_id: task.coalesced for task in await tasks(store)}
    head = await journal.head()

    found = [await explain(store, journal, name, place) for name in names for place in range(1, head + 1)]

    coalesced = Counter(each.task.task_id for each in found if each.task and each.outcome is MatchOutcome.COALESCED)
    assert {task_id: count for task_id, count in counted.items() if count} == coalesced
    assert {each.outcome for each in found} >= {MatchOutcome.COALESCED, MatchOutcome.FORGOTTEN, MatchOutcome.TASK}


async def test_what_a_debounced_reaction_does_not_match_is_not_explained_with_the_task_of_a_newer_entry(
    store: Store, journal: Journal
) -> None:
    await store.reactions.register(reaction(predicate_cel="payload.n > 1", debounce_ms=60_000))
    await publish(store, 3)
    await match(store)

    found = await explain(store, journal, "rule", 2)

    assert found.outcome is MatchOutcome.NO_MATCH and found.task is None


async def test_a_task_of_a_backfill_is_explained_as_a_task(store: Store, journal: Journal) -> None:
    (entry,) = await publish(store, 1)
    rule = reaction(bootstrap_from_head=True)
    await store.reactions.register(rule)
    await match(store)
    await store.tasks.make([Match(rule, entry)])

    found = await explain(store, journal, "rule", entry.global_seq)

    assert found.outcome is MatchOutcome.BACKFILLED and found.task is not None and not found.judgement.is_active


async def test_a_reaction_that_begins_at_the_head_explains_that_it_skipped_history(
    store: Store, journal: Journal
) -> None:
    await publish(store, 1)
    await store.reactions.register(reaction(bootstrap_from_head=True))
    await match(store)

    found = await explain(store, journal, "rule", 1)

    assert found.outcome is MatchOutcome.NOT_ACTIVE and "after position 2" in found.judgement.reason


async def test_what_is_not_there_cannot_be_explained(store: Store, journal: Journal) -> None:
    await store.reactions.register(reaction())
    with pytest.raises(NotFound, match="no reaction 'other'"):
        await explain(store, journal, "other", 1)
    with pytest.raises(NotFound, match="the journal ends at 1"):
        await explain(store, journal, "rule", 2)


async def test_explain_agrees_with_the_matcher_whatever_happened_to_a_reaction(
    store: Store, journal: Journal, scale: Scale
) -> None:
    random, names = Random(9), [f"rule{number}" for number in range(40)]
    await live(store, random, names, steps=100, sometimes=lambda: work(store))
    made = {(task.reaction_id, task.source_global_seq) for task in await tasks(store)}
    every = [(name, place) for name in names for place in range(1, await journal.head() + 1)]
    cases = random.sample(every, min(len(every), scale(300)))

    found = {case: (await explain(store, journal, *case)).outcome for case in cases}

    assert {case for case, outcome in found.items() if outcome is MatchOutcome.TASK} == made & set(cases)
    assert len(set(found.values())) >= 4 and MatchOutcome.FORGOTTEN not in found.values()


async def live(
    store: Store,
    random: Random,
    names: list[str],
    steps: int,
    debounce_ms: int = 0,
    sometimes: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """Registers, changes, pauses, resumes and removes reactions at random, and matches now and then."""
    matcher = Matcher(store)
    for name in names:
        await define(store, random, name, debounce_ms)
    doings: list[Callable[[], Awaitable[object]]] = [
        lambda: define(store, random, random.choice(names), debounce_ms),
        lambda: store.reactions.remove(random.choice(names)),
        lambda: halt(store, random.choice(names), random.random() < 0.4),
        lambda: catch_up(matcher),
        *([sometimes] if sometimes else []),
    ]
    for number in range(steps):
        subject = random.choice(["/a/b", "/b/c", "/a/b/c"])
        await append(store, *(make_event("r1", n, subject=subject) for n in range(random.randint(1, 5))))
        await random.choice(doings)()
        if number == steps // 2:
            matcher = Matcher(store)
    for name in names:
        await define(store, random, name, debounce_ms)
        await halt(store, name, is_pausing=False)
    await catch_up(matcher)


async def define(store: Store, random: Random, name: str, debounce_ms: int) -> None:
    options = {"predicate_cel": random.choice(PREDICATES), "bootstrap_from_head": random.random() < 0.5}
    debounce = random.choice([0, debounce_ms])
    await store.reactions.register(reaction(name, random.choice(PATTERNS), debounce_ms=debounce, **options))


async def halt(store: Store, name: str, is_pausing: bool) -> None:
    record = await store.reactions.find(name)
    if record is not None and not record.is_removed:
        await (store.reactions.pause(name, "maintenance") if is_pausing else store.reactions.resume(name))

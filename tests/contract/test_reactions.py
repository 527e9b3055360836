"""Reactions: a registration is an entry, and each match becomes one task, however many matchers run."""

from typing import Any

import anyio
import pytest

from tape.bus.journal import Journal
from tape.core.codec import JsonValue
from tape.core.errors import NotFound
from tape.core.event import Event
from tape.core.ids import GlobalSeq
from tape.core.matched import MatchedPage
from tape.core.ports import Store
from tape.core.registration import fold_registrations
from tape.core.subject import Pattern
from tape.core.task import ClaimRequest, Match, TaskStatus
from tape.matcher import match_batch
from tape.matcher.matcher import Matcher
from tests.conftest import Scale
from tests.contract.backends import Backend, needs_ledgers
from tests.contract.events import append, make_event
from tests.contract.reactions import catch_up, claim, match, publish, reaction, repeatedly, settle, sources, tasks

pytestmark = needs_ledgers


async def test_registering_is_an_entry_in_a_run_of_its_own(store: Store) -> None:
    await store.reactions.register(reaction())

    (entry,) = (await store.journal.read(GlobalSeq(0))).entries

    assert (entry.kind, entry.subject) == ("reaction", "/tape/reaction/registered/rule")
    assert entry.run_id.startswith("tape.reaction.") and len(entry.run_id) == len("tape.reaction.") + 32
    assert fold_registrations([entry])["rule"].reaction == reaction()


async def test_reactions_are_listed_page_by_page_in_the_order_of_their_ids(store: Store) -> None:
    for number, name in enumerate(("b", "d", "a", "c", "e")):
        await store.reactions.register(reaction(name, pattern=("/x/**", "/y/**")[number % 2]))
    await store.reactions.remove("a")

    async def listed(pattern: str = "", **page: Any) -> list[str]:
        return [record.reaction.reaction_id for record in await store.reactions.listed(pattern, **page)]

    assert await listed() == ["b", "c", "d", "e"]
    assert await listed(limit=2) == ["b", "c"]
    assert await listed(limit=2, after="c") == ["d", "e"]
    assert await listed("/y/**", limit=1, after="c") == ["d"]


async def test_only_what_the_pattern_matches_makes_a_task(store: Store) -> None:
    await store.reactions.register(reaction(pattern="/tape/value/changed/treasury/**"))
    await append(
        store, make_event(subject="/tape/value/changed/treasury/fx"), make_event(subject="/tape/value/changed/other/x")
    )

    await match(store)

    (task,) = await tasks(store)
    assert (task.subject, task.payload_json) == ("/tape/value/changed/treasury/fx", '{"n":0}')
    assert (task.status, task.source_run_id, task.source_global_seq) == (TaskStatus.PENDING, "r1", 2)


async def test_only_what_the_predicate_holds_for_makes_a_task(store: Store) -> None:
    await store.reactions.register(reaction(predicate_cel="payload.n > 1 && run_id == 'r1'"))
    await publish(store, 3)

    await match(store)

    assert await sources(store) == [3, 4]


async def test_history_is_matched_unless_the_reaction_begins_at_the_head(store: Store) -> None:
    await publish(store, 2)
    await store.reactions.register(reaction("old"))
    await store.reactions.register(reaction("new", bootstrap_from_head=True))
    await publish(store, 1)

    await match(store)

    assert await sources(store, "old") == [1, 2, 5]
    assert await sources(store, "new") == [5]


async def test_a_reaction_that_begins_at_the_head_has_its_cursor_there_at_once(store: Store) -> None:
    await publish(store, 5)

    record = await store.reactions.register(reaction(bootstrap_from_head=True, num_shards=3))

    assert record.cursor == 5
    assert await cursors(store) == [("rule", 0, 5), ("rule", 1, 5), ("rule", 2, 5)]


async def test_registering_again_never_moves_a_cursor(store: Store) -> None:
    await store.reactions.register(reaction())
    await publish(store, 2)
    await match(store)
    await publish(store, 2)

    await store.reactions.register(reaction(bootstrap_from_head=True, max_concurrency=5))
    await match(store)

    assert await sources(store) == [2, 3, 4, 5]


async def test_registering_the_same_again_leaves_no_entry(store: Store) -> None:
    await store.reactions.register(reaction())

    await store.reactions.register(reaction())

    assert (await store.journal.bounds()).head == 1


async def test_a_change_is_active_from_its_position_on(store: Store) -> None:
    await store.reactions.register(reaction(bootstrap_from_head=True))
    await publish(store, 2)
    await store.reactions.register(reaction(pattern="/b/**"))
    await publish(store, 1)
    await publish(store, 1, "/b/c")

    await match(store)

    assert await sources(store) == [2, 3, 6]


async def test_a_reaction_that_is_behind_applies_its_changes_at_their_positions(store: Store) -> None:
    await store.reactions.register(reaction())
    await publish(store, 2)
    await store.reactions.register(reaction(pattern="/b/**"))
    await publish(store, 2, "/b/c")

    await match(store)

    assert await sources(store) == [2, 3, 5, 6]


async def test_the_state_of_reactions_is_a_fold_of_the_entries(store: Store) -> None:
    await store.reactions.register(reaction("a"))
    await store.reactions.register(reaction("b", debounce_ms=5))
    await store.reactions.register(reaction("b", debounce_ms=6))
    await store.reactions.pause("a", "maintenance")
    await store.reactions.remove("b")

    page = await store.journal.read(GlobalSeq(0), pattern=Pattern("/tape/reaction/**"))
    forces = fold_registrations(page.entries)

    assert [entry.type for entry in page.entries] == ["registered", "registered", "changed", "paused", "removed"]
    assert (forces["a"].paused, forces["b"].is_removed, forces["b"].reaction.debounce_ms) == ("maintenance", True, 6)


async def test_a_paused_reaction_waits_and_reads_on_when_it_is_resumed(store: Store) -> None:
    await store.reactions.register(reaction(bootstrap_from_head=True))
    await publish(store, 1)
    await store.reactions.pause("rule", "maintenance")
    await publish(store, 2)
    await match(store)
    before = await sources(store)

    await store.reactions.resume("rule")
    await publish(store, 1)
    await match(store)

    assert before == [2]
    assert await sources(store) == [2, 4, 5, 7]


async def test_a_reaction_paused_while_behind_still_matches_each_entry_with_the_definition_of_its_time(
    store: Store,
) -> None:
    await store.reactions.register(reaction())
    await publish(store, 1)
    await store.reactions.register(reaction(pattern="/b/**"))
    await store.reactions.pause("rule", "maintenance")
    await publish(store, 1)
    await publish(store, 1, "/b/c")
    await store.reactions.resume("rule")

    await match(store)

    assert await sources(store) == [2, 6]


async def test_work_of_a_paused_reaction_is_not_claimed(store: Store) -> None:
    await store.reactions.register(reaction())
    await publish(store, 1)
    await match(store)

    await store.reactions.pause("rule", "maintenance")
    held_back = await claim(store)
    await store.reactions.resume("rule")

    assert held_back == [] and len(await claim(store)) == 1


async def test_removing_ends_what_is_pending_and_lets_the_claimed_settle(store: Store) -> None:
    await store.reactions.register(reaction())
    await publish(store, 3)
    await match(store)
    (claimed,) = await claim(store, limit=1)

    await store.reactions.remove("rule")
    await match(store)

    dead = await tasks(store, status=TaskStatus.DLQ)
    assert [(task.source_global_seq, task.last_error) for task in dead] == [(3, "deregistered"), (4, "deregistered")]
    assert await settle(store, claimed) is None


async def test_what_is_matched_after_the_removal_was_asked_for_dies_too(store: Store) -> None:
    await store.reactions.register(reaction())
    await match(store)
    await publish(store, 2)

    await store.reactions.remove("rule")
    await match(store)

    assert {task.last_error for task in await tasks(store)} == {"deregistered"}


async def test_registering_a_removed_one_again_goes_on_from_its_cursor(store: Store) -> None:
    await store.reactions.register(reaction())
    await publish(store, 1)
    await match(store)
    await store.reactions.remove("rule")
    await publish(store, 2)
    await match(store)

    await store.reactions.register(reaction(bootstrap_from_head=True))
    await publish(store, 1)
    await match(store)

    assert await sources(store, status=TaskStatus.PENDING) == [4, 5, 7]


async def test_what_is_not_there_cannot_be_paused_and_need_not_be_removed(store: Store) -> None:
    assert await store.reactions.remove("rule") is False
    with pytest.raises(NotFound, match="no reaction 'rule'"):
        await store.reactions.pause("rule", "maintenance")


async def test_p10_one_task_per_match_under_many_matchers(backend: Backend, store: Store, scale: Scale) -> None:
    for number in range(5):
        await store.reactions.register(reaction(f"rule{number}", num_shards=4))
    count = scale(200)

    async def publishing() -> None:
        for number in range(count):
            await publish(store, 1, run_id=f"r{number % 7}")

    async with anyio.create_task_group() as group:
        group.start_soon(publishing)
        for _ in range(3):
            group.start_soon(repeatedly, Matcher(store), count)
    await match(store)

    for number in range(5):
        assert await sources(store, f"rule{number}") == list(range(6, 6 + count))


@pytest.mark.parametrize("asked", [None, ClaimRequest(owner="me", reaction_ids=("rule",))], ids=["plain", "claimed"])
async def test_p10_a_page_that_another_matcher_has_overtaken_is_not_recorded(
    store: Store, asked: ClaimRequest | None
) -> None:
    await store.reactions.register(reaction())
    first, second = await publish(store, 2)
    known = await store.reactions.match_cursor(0)
    page = MatchedPage(
        version=known.version, epoch=store.epoch, cursor=first.global_seq, states={}, predicate_errors={},
        matches=[Match(reaction(), first)], claim=asked,
    )  # fmt: skip

    mine = await store.reactions.record(page)
    theirs = await store.reactions.record(page._replace(cursor=second.global_seq, matches=[Match(reaction(), second)]))

    assert mine is not None and theirs is None
    assert (await store.reactions.match_cursor(0)).cursor == first.global_seq
    assert await sources(store) == [first.global_seq]


async def test_p10_a_page_with_more_matches_than_a_batch_holds_is_matched_to_its_end(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(match_batch, "MAX_MATCHES", 10)
    for number in range(3):
        await store.reactions.register(reaction(f"rule{number}"))
    await publish(store, 50)

    await match(store)

    for number in range(3):
        assert await sources(store, f"rule{number}") == list(range(4, 54))


async def test_p10_a_matcher_that_is_cut_off_anywhere_neither_loses_nor_repeats(store: Store, scale: Scale) -> None:
    await store.reactions.register(reaction())
    await publish(store, 50)

    for number in range(scale(30)):
        with anyio.move_on_after(0.0005 * number):
            await catch_up(Matcher(store))
    await match(store)

    assert await sources(store) == list(range(2, 52))


async def test_p10_changing_the_number_of_shards_neither_replays_nor_duplicates(store: Store) -> None:
    for shards in (4, 8, 3):
        await store.reactions.register(reaction(num_shards=shards))
        for number in range(10):
            await publish(store, 1, run_id=f"r{number}")
        await match(store)

    claimed = [await store.tasks.claim(ClaimRequest(owner="me", limit=100, shard=shard)) for shard in range(3)]

    assert len(await tasks(store)) == 30
    assert sum(len(each.tasks) for each in claimed) == 30


async def test_a_restarted_matcher_goes_on_where_the_last_one_was(backend: Backend, store: Store) -> None:
    await store.reactions.register(reaction("early"))
    await publish(store, 3)
    await match(store)
    await store.reactions.register(reaction("late"))
    await publish(store, 3)

    await match(store)

    assert await sources(store, "early") == [2, 3, 4, 6, 7, 8]
    assert await sources(store, "late") == [2, 3, 4, 6, 7, 8]


async def test_a_reaction_that_is_behind_catches_up(store: Store) -> None:
    await publish(store, 900)
    await store.reactions.register(reaction())

    await match(store)

    cursor = await store.reactions.match_cursor(0)
    assert cursor.states["rule"].cursor is None and cursor.cursor == 901
    assert len(await tasks(store)) == 900


async def test_errors_of_a_predicate_are_counted_and_shown_and_the_cursor_moves(store: Store) -> None:
    await store.reactions.register(reaction(predicate_cel="payload.missing > 1"))
    for _ in range(10):
        await publish(store, 1_000)

    await match(store)

    record = await store.reactions.find("rule")
    assert record is not None and (record.errors, record.cursor) == (10_000, 10_001)
    assert "missing" in record.last_error and await tasks(store) == []


async def test_a_chain_of_reactions_ends_at_depth_16_with_the_reason(store: Store) -> None:
    await store.reactions.register(reaction())
    cause = None
    for number in range(20):
        (entry,) = await append(store, Event(run_id="r1", payload=number, subject="/a/b", cause=cause))
        cause = entry.global_seq

    await match(store)

    (dead,) = await tasks(store, status=TaskStatus.DLQ)
    assert await sources(store, status=TaskStatus.PENDING) == list(range(2, 18))
    assert dead.source_global_seq == 18 and "depth 16" in dead.last_error
    page = await store.journal.read(GlobalSeq(0), pattern=Pattern("/tape/task/dead/**"))
    assert [entry.cause for entry in page.entries] == [18]


async def test_reactions_to_dead_tasks_come_to_an_end(store: Store) -> None:
    await store.reactions.register(reaction(pattern="/tape/task/**"))
    await store.reactions.register(reaction("self", pattern="/**"))
    cause = None
    for number in range(18):
        (entry,) = await append(store, Event(run_id="r1", payload=number, subject="/a/b", cause=cause))
        cause = entry.global_seq

    await match(store)

    head = (await store.journal.bounds()).head
    assert head == 2 + 18 + 1


async def test_a_fork_makes_no_task_of_what_it_inherits(store: Store, journal: Journal) -> None:
    for number in range(100):
        await store.reactions.register(reaction(f"rule{number}"))
    await publish(store, 3)
    await match(store)
    before = await sources(store)

    await journal.fork("r1", 3, run_id="child")
    await match(store)

    assert await sources(store) == before and len(before) == 300


async def test_a_large_entry_that_many_react_to_makes_all_their_tasks(store: Store) -> None:
    for number in range(30):
        await store.reactions.register(reaction(f"rule{number}"))
    await append(store, Event(run_id="r1", payload="x" * 900_000, subject="/a/b"))

    await match(store)

    assert len(await tasks(store)) == 30


async def test_the_predicates_printed_in_the_specification_match(store: Store) -> None:
    where = "payload.value.value_json != prev_value_json && double(payload.value.value_json) > 100.0"
    await store.reactions.register(reaction(pattern="/tape/value/changed/treasury/**", predicate_cel=where))
    for now, before in (("120.5", "99"), ("120.5", "120.5"), ("99", "120.5"), ("150", "")):
        payload: JsonValue = {"value": {"value_json": now}, "prev_value_json": before}
        subject = "/tape/value/changed/treasury/fx"
        await append(store, Event(run_id="r1", kind="value", type="changed", payload=payload, subject=subject))

    await match(store)

    assert [(task.source_global_seq, task.prev_value_json) for task in await tasks(store)] == [(2, "99"), (5, "")]


class SlowClocks:
    """Clocks by which every evaluation takes a given time."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._now = 0.0

    def wall(self) -> float:
        self._now += self._seconds
        return self._now

    def cpu(self) -> float:
        return self._now


async def test_a_predicate_that_takes_too_long_is_paused_with_the_reason(store: Store) -> None:
    await store.reactions.register(reaction("slow", predicate_cel="payload.n > 0"))
    await store.reactions.register(reaction("plain"))
    await publish(store, 3)

    await catch_up(Matcher(store, clocks=SlowClocks(0.060)))
    record = await store.reactions.find("slow")

    assert record is not None and (record.paused, record.cursor) == ("quarantined", 2)
    assert await sources(store) == [3, 4, 5]
    page = await store.journal.read(GlobalSeq(0), pattern=Pattern("/tape/reaction/paused/**"))
    assert [entry.payload for entry in page.entries] == [{"reaction_id": "slow", "reason": "quarantined", "cursor": 2}]


async def test_a_predicate_that_was_slow_once_is_not_paused(store: Store) -> None:
    await store.reactions.register(reaction(predicate_cel="payload.n > 0"))
    await publish(store, 3)

    await catch_up(Matcher(store, clocks=CollectingClocks()))

    record = await store.reactions.find("rule")
    assert record is not None and record.paused == "" and await sources(store) == [2, 3, 4]


class CollectingClocks:
    """Clocks of a process whose garbage collector runs during the first evaluation."""

    def __init__(self) -> None:
        self._asked = 0

    def wall(self) -> float:
        self._asked += 1
        return 0.080 if self._asked > 1 else 0.0

    def cpu(self) -> float:
        return 0.080 if self._asked > 1 else 0.0


async def test_a_quarantined_reaction_reads_on_where_it_was_stopped(store: Store) -> None:
    await store.reactions.register(reaction(predicate_cel="payload.n > 0"))
    await publish(store, 2)
    await catch_up(Matcher(store, clocks=SlowClocks(0.060)))

    await store.reactions.register(reaction(predicate_cel="payload.n > 1"))
    still_paused = await sources(store)
    await store.reactions.resume("rule")
    await match(store)

    assert still_paused == [] and await sources(store) == [3]


async def test_p19_a_slow_predicate_is_matched_alone_and_catches_up(store: Store) -> None:
    await store.reactions.register(reaction("slow", predicate_cel="payload.n > 0"))
    await store.reactions.register(reaction("plain"))
    matcher = Matcher(store, clocks=SlowClocks(0.040))
    await catch_up(matcher)
    await publish(store, 40)

    await matcher.step()
    first = await sources(store, "plain")
    await catch_up(matcher)

    assert first == list(range(3, 43))
    assert await sources(store, "slow") == list(range(3, 43))


async def cursors(store: Store) -> list[tuple[str, int, int]]:
    async with store.transaction() as tx:
        rows = await tx.fetch("SELECT reaction_id, shard, last_global_seq FROM tape_reaction_cursors ORDER BY 1, 2", {})
    return [(row[0], row[1], row[2]) for row in rows]

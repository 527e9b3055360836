"""A task that was claimed as it was matched is a task like any other, whatever happens to it."""

from collections.abc import Sequence
from datetime import timedelta

import anyio

from tape.core.ids import GlobalSeq
from tape.core.ports import Page, Store
from tape.core.subject import Pattern
from tape.core.task import Died, Done, Failed, Outcome, Settlement, Task, TaskStatus, shard_hash
from tape.matcher.matcher import Matcher
from tests.conftest import Scale
from tests.contract.backends import needs_ledgers
from tests.contract.events import append, make_event
from tests.contract.reactions import (
    RecordingSlots,
    catch_up,
    claim,
    expire,
    publish,
    reaction,
    settle,
    sources,
    tasks,
)

pytestmark = needs_ledgers


async def claimed_as_matched(
    store: Store, count: int = 3, slots: RecordingSlots | None = None, **options: object
) -> list[Task]:
    slots = slots or RecordingSlots(1_000, "rule", "other")
    await store.reactions.register(reaction(**options))  # type: ignore[arg-type]
    await publish(store, count)
    await catch_up(Matcher(store, slots=slots))
    return slots.started


async def test_it_is_found_listed_counted_and_explained_before_it_ends(store: Store) -> None:
    first, *_ = await claimed_as_matched(store)

    assert await store.tasks.find(first.task_id) == first
    assert await store.tasks.made_of("rule", first.source_global_seq, first.subject) == first
    assert await sources(store, status=TaskStatus.CLAIMED) == [2, 3, 4] and await sources(store, status=3) == []
    assert [(each.status, each.n_tasks) for each in await store.tasks.outcomes()] == [("claimed", 3)]


async def test_a_page_has_the_newest_whether_or_not_they_have_ended(store: Store) -> None:
    first, *_ = await claimed_as_matched(store)
    await settle(store, first)

    newest = await store.tasks.listed(limit=1)
    rest = await store.tasks.listed(limit=10, before=newest[-1].place)

    assert [task.source_global_seq for task in (*newest, *rest)] == [4, 3, 2] and len(newest) == 1


async def test_when_some_have_ended_the_others_are_still_claimed(store: Store) -> None:
    first, second, third = await claimed_as_matched(store)

    assert await settle(store, second) is None

    assert [task.status for task in await tasks(store)] == [TaskStatus.CLAIMED, TaskStatus.DONE, TaskStatus.CLAIMED]
    assert [await settle(store, task) for task in (first, third)] == [None, None]
    assert await sources(store, status=TaskStatus.DONE) == [2, 3, 4]


async def test_p11_no_claimed_task_is_settled_twice(store: Store) -> None:
    first, *rest = await claimed_as_matched(store)
    await settle(store, first)

    answers = await store.tasks.settle([Settlement(task.claim, Done()) for task in (first, *rest)])

    assert [answer is None for answer in answers] == [False, True, True]
    assert await settle(store, first) is not None


async def test_p11_only_the_owner_settles_a_claimed_task(store: Store) -> None:
    first, *_ = await claimed_as_matched(store)
    foreign = first.claim._replace(owner="somebody")
    unmatched = first.claim._replace(task_id=type(first.task_id)(f"{first.task_id[:-1]}9"))

    answers = [(await store.tasks.settle([Settlement(each, Done())]))[0] for each in (foreign, unmatched)]

    assert None not in answers and await sources(store, status=TaskStatus.CLAIMED) == [2, 3, 4]


async def test_p12_a_claimed_attempt_counts_when_its_lease_ends(store: Store) -> None:
    lost = await claimed_as_matched(store)

    await expire(store)
    again = await claim(store)

    assert [(task.source_global_seq, task.attempt, task.attempts) for task in again] == [(n, 2, 2) for n in (2, 3, 4)]
    assert all([await settle(store, task) is not None for task in lost])
    assert [await settle(store, task) for task in again] == [None] * 3


async def test_p12_the_last_claimed_attempt_ends_dead_with_its_lease(store: Store) -> None:
    await claimed_as_matched(store, 1, retry_max=0)

    await expire(store)
    await claim(store)

    assert [task.status for task in await tasks(store)] == [TaskStatus.DLQ]


async def test_a_failed_claim_is_tried_again_and_a_dead_one_is_not(store: Store) -> None:
    first, second, third = await claimed_as_matched(store)
    outcomes: tuple[Outcome, ...] = (Failed("no"), Died("never"), Done())

    answers = await store.tasks.settle(
        [Settlement(task.claim, outcome) for task, outcome in zip((first, second, third), outcomes, strict=True)]
    )

    assert list(answers) == [None] * 3
    assert [task.status for task in await tasks(store)] == [TaskStatus.PENDING, TaskStatus.DLQ, TaskStatus.DONE]


async def test_a_heartbeat_extends_the_lease_of_a_claimed_task(store: Store) -> None:
    first, second, _ = await claimed_as_matched(store)
    await settle(store, second)

    answers = await store.tasks.extend([first.claim, second.claim], timedelta(minutes=5))

    assert [answer is None for answer in answers] == [True, False]
    longer = await store.tasks.find(first.task_id)
    assert longer is not None and longer.lease_expires_at_ms > first.lease_expires_at_ms
    assert await settle(store, first) is None


async def test_p13_claimed_tasks_hold_their_slots(store: Store) -> None:
    first, *_ = await claimed_as_matched(store, 3, max_concurrency=2)

    assert await claim(store) == []
    await settle(store, first)

    assert [task.source_global_seq for task in await claim(store)] == [4]


async def test_it_goes_on_when_its_entries_leave_the_journal(store: Store) -> None:
    first, *rest = await claimed_as_matched(store, 3, num_shards=4)
    await settle(store, first)

    await store.retention.trim(GlobalSeq(4))

    assert (await tasks(store))[1:] == rest
    assert [await settle(store, task) for task in rest] == [None, None]


async def test_a_page_that_has_left_the_journal_still_makes_tasks(store: Store) -> None:
    slots = RecordingSlots(1_000, "rule", "other")
    await store.reactions.register(reaction())
    await publish(store, 3)
    matcher = Matcher(store, Remembered(await store.journal.read(GlobalSeq(0))), slots=slots)
    await store.retention.trim(GlobalSeq(4))

    await catch_up(matcher)

    assert await sources(store) == [2, 3, 4]


class Remembered:
    """A journal that was read before it was trimmed."""

    def __init__(self, page: Page) -> None:
        self._page = page

    async def read(self, after: GlobalSeq, *, pattern: Pattern | None = None) -> Page:
        kept = [entry for entry in self._page.entries if entry.global_seq > after]
        return self._page._replace(entries=kept, scanned_to=GlobalSeq(max(after, self._page.scanned_to)))

    async def wait(self, beyond: GlobalSeq) -> None:
        await anyio.sleep_forever()


async def test_a_changed_number_of_shards_counts_for_claimed_tasks(store: Store) -> None:
    await claimed_as_matched(store)

    await store.reactions.register(reaction(num_shards=7))
    await expire(store)
    await claim(store)

    assert {task.shard for task in await tasks(store)} == {shard_hash("r1") % 7}


async def test_entries_of_many_runs_and_of_some_subjects_end_as_they_were_given(store: Store) -> None:
    slots, other = RecordingSlots(1_000, "rule", "other"), reaction("other", "/a/1/**", num_shards=5)
    for each in (reaction(num_shards=3), other):
        await store.reactions.register(each)
    await append(store, *(make_event(f"r{n % 7}", n, subject=f"/a/{n % 3}") for n in range(50)))
    await catch_up(Matcher(store, slots=slots))
    before = await tasks(store)

    for part in (slots.started[::2], slots.started[1::2]):
        await store.tasks.settle([Settlement(task.claim, Done()) for task in part])

    after = await tasks(store)
    assert len(after) == 50 + 17 == len(before) and {task.status for task in after} == {TaskStatus.DONE}
    facts = [(task.task_id, task.shard, task.source_run_id, task.payload_json) for task in before]
    assert [(task.task_id, task.shard, task.source_run_id, task.payload_json) for task in after] == facts


async def test_p10_to_p12_hold_when_leases_end_while_work_is_settled(store: Store, scale: Scale) -> None:
    """The loser of the race for a claim gets an error, and everything ends done once."""
    lost = await claimed_as_matched(store, scale(40))
    done: list[str] = []

    async def settling(some: Sequence[Task]) -> None:
        answers = await store.tasks.settle([Settlement(task.claim, Done()) for task in some])
        done.extend(task.task_id for task, stale in zip(some, answers, strict=True) if stale is None)

    async def taking() -> None:
        await expire(store)
        again = await claim(store, 10_000, owner="another")
        await settling(again)

    async with anyio.create_task_group() as group:
        for first in range(0, len(lost), 4):
            group.start_soon(settling, lost[first : first + 4])
        group.start_soon(taking)
    await taking()

    assert len(done) == len(set(done)) == len(lost)
    assert {task.status for task in await tasks(store)} == {TaskStatus.DONE}

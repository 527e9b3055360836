"""Tasks: leases, fencing, attempts, limits, debouncing and replay."""

from datetime import timedelta
from functools import partial

import anyio
import pytest
from anyio.lowlevel import checkpoint

from tape.bus.retention import run_retention
from tape.core.background import background
from tape.core.errors import StaleClaim, UsageError
from tape.core.ids import GlobalSeq
from tape.core.ports import Store
from tape.core.subject import Pattern
from tape.core.task import (
    ClaimRequest,
    Died,
    Done,
    Failed,
    Outcome,
    Released,
    Settlement,
    Task,
    TaskClaim,
    TaskId,
    TaskStatus,
)
from tape.store.clock import now_ms
from tests.conftest import Scale
from tests.contract.backends import Backend, needs_ledgers
from tests.contract.events import append, make_event
from tests.contract.reactions import (
    LONG,
    claim,
    expire,
    match,
    publish,
    reaction,
    settle,
    tasks,
)
from tests.deadlines import DEADLINE_S

pytestmark = needs_ledgers


async def given(store: Store, count: int = 1, **options: object) -> None:
    """A reaction with that many pending tasks."""
    await store.reactions.register(reaction(**options))  # type: ignore[arg-type]
    await publish(store, count)
    await match(store)


async def test_a_claim_gives_each_task_to_one_owner(store: Store) -> None:
    await given(store, 5)

    mine, yours = await claim(store, 3, "me"), await claim(store, 3, "you")

    assert [task.source_global_seq for task in mine] == [2, 3, 4]
    assert [(task.source_global_seq, task.lease_owner) for task in yours] == [(5, "you"), (6, "you")]
    assert {(task.attempt, task.attempts, task.status) for task in mine} == {(1, 1, TaskStatus.CLAIMED)}


async def test_p12_the_task_that_is_due_longest_is_claimed_first(store: Store) -> None:
    await given(store, 3)
    async with store.transaction() as tx:
        for place, due in ((2, 30), (3, 10), (4, 20)):
            moved = {"place": place, "due": due}
            await tx.fetch("UPDATE tape_tasks SET next_attempt_at_ms = :due WHERE source_global_seq = :place", moved)

    claimed = [(await claim(store, 1))[0].source_global_seq for _ in range(3)]

    assert claimed == [3, 4, 2]


async def test_nothing_is_claimed_without_an_owner(store: Store) -> None:
    with pytest.raises(UsageError, match="owner is required"):
        await claim(store, owner="")


async def test_a_claim_can_be_for_one_reaction_or_one_shard(store: Store) -> None:
    await store.reactions.register(reaction("one"))
    await given(store, 4, reaction_id="other")

    mine = await store.tasks.claim(ClaimRequest(owner="me", reaction_ids=("one",)))

    assert {task.reaction_id for task in mine.tasks} == {"one"} and len(mine.tasks) == 4


async def test_a_released_task_has_used_no_attempt_and_may_be_claimed_at_once(store: Store) -> None:
    await given(store, retry_max=1, retry_backoff_ms=1)
    (first,) = await claim(store, owner="me")
    await settle(store, first, Failed("no answer", timedelta(0)))
    (second,) = await claim(store, owner="me")

    assert await settle(store, second, Released()) is None
    (left,) = await tasks(store)
    (third,) = await claim(store, owner="you")

    assert (left.status, left.attempts, left.last_error) == (TaskStatus.PENDING, 1, "no answer")
    assert (third.attempts, third.attempt) == (2, 3)
    assert isinstance(await settle(store, second), StaleClaim)


async def test_a_task_that_is_released_after_its_reaction_was_removed_is_dead(store: Store) -> None:
    await given(store)
    (task,) = await claim(store)
    await store.reactions.remove("rule")

    await settle(store, task, Released())

    (dead,) = await tasks(store)
    assert (dead.status, dead.last_error) == (TaskStatus.DLQ, "deregistered")


async def test_what_is_done_stays_done(store: Store) -> None:
    await given(store)
    (task,) = await claim(store)

    answer = await settle(store, task)
    again = await settle(store, task)

    (done,) = await tasks(store)
    assert answer is None and isinstance(again, StaleClaim)
    assert done.status is TaskStatus.DONE and done.completed_at_ms >= done.created_at_ms


async def test_a_failed_attempt_waits_and_comes_again(store: Store) -> None:
    await given(store, retry_backoff_ms=60_000)
    (task,) = await claim(store)

    await settle(store, task, Failed("boom"))
    too_soon = await store.tasks.claim(ClaimRequest(owner="me"))
    await expire(store)
    (again,) = await claim(store)

    assert too_soon.tasks == [] and too_soon.more_after is not None
    assert timedelta(seconds=50) < too_soon.more_after < timedelta(seconds=70)
    assert (again.attempt, again.attempts, again.last_error) == (2, 2, "boom")


async def test_a_handler_may_choose_the_retry_delay(store: Store) -> None:
    await given(store, retry_backoff_ms=60_000)
    (task,) = await claim(store)

    await settle(store, task, Failed("later", after=timedelta(0)))

    assert len(await claim(store)) == 1


async def test_p11_only_the_newest_attempt_settles(store: Store) -> None:
    await given(store)
    (first,) = await claim(store, owner="me")
    await expire(store)
    (second,) = await claim(store, owner="me")

    stale = await settle(store, first)
    fresh = await settle(store, second)

    assert isinstance(stale, StaleClaim) and fresh is None
    assert second.attempt == first.attempt + 1


@pytest.mark.parametrize("outcome", [Done(), Failed("x"), Died("x"), Released()], ids=lambda each: type(each).__name__)
async def test_p11_neither_an_earlier_attempt_nor_another_owner_settles(store: Store, outcome: Outcome) -> None:
    await given(store)
    earlier = []
    for _ in range(2):
        earlier += await claim(store, owner="me")
        await expire(store)
    (newest,) = await claim(store, owner="me")
    others = [task.claim for task in earlier] + [newest.claim._replace(owner="you")]

    answers = [(await store.tasks.settle([Settlement(each, outcome)]))[0] for each in others]

    assert [type(answer) for answer in answers] == [StaleClaim] * 3
    assert await tasks(store) == [newest]


async def test_p11_a_stale_owner_changes_nothing(store: Store) -> None:
    await given(store)
    (first,) = await claim(store, owner="me")
    await expire(store)
    (second,) = await claim(store, owner="you")

    answers = [await settle(store, first, outcome) for outcome in (Done(), Failed("x"), Died("x"))]
    (now,) = await tasks(store)

    assert all(isinstance(answer, StaleClaim) for answer in answers)
    assert now == second


@pytest.mark.parametrize("second_owner", ["me", "you"])
async def test_p11_of_two_concurrent_settlements_only_the_newest_attempt_counts(
    store: Store, second_owner: str, scale: Scale
) -> None:
    await given(store, min(scale(200), 1_000))
    late = await claim(store, 1_000, "me")
    await expire(store)
    fresh = await claim(store, 1_000, second_owner)
    settled: list[tuple[TaskId, int]] = []

    async def settle_all(tasks: list[Task]) -> None:
        for task in tasks:
            if await settle(store, task) is None:
                settled.append((task.task_id, task.attempt))

    async with anyio.create_task_group() as group:
        group.start_soon(settle_all, late)
        group.start_soon(settle_all, fresh)

    assert sorted(settled) == sorted((task.task_id, 2) for task in fresh) and len(fresh) == len(late)


async def test_p11_a_heartbeat_of_an_older_attempt_is_refused(store: Store) -> None:
    await given(store)
    (first,) = await claim(store)
    await expire(store)
    (second,) = await claim(store)

    stale, fresh = [(await store.tasks.extend([task.claim], LONG))[0] for task in (first, second)]

    assert isinstance(stale, StaleClaim) and fresh is None


async def test_p11_an_unclaimed_task_cannot_be_settled(store: Store) -> None:
    await given(store)
    (task,) = await tasks(store)

    foreign = Settlement(TaskClaim(task.task_id, "me", 1), Done())
    unknown = Settlement(TaskClaim(TaskId("nothing"), "me", 1), Done())
    answers = await store.tasks.settle([foreign, unknown])

    assert all(isinstance(answer, StaleClaim) for answer in answers)
    assert (await tasks(store))[0].status is TaskStatus.PENDING


async def test_attempt_zero_is_the_owners_own_until_its_lease_ends(store: Store) -> None:
    await given(store, 2)
    one, other = await claim(store)
    anonymous = [Settlement(TaskClaim(task.task_id, "me", 0), Done()) for task in (one, other)]

    (live,) = await store.tasks.settle(anonymous[:1])
    await expire(store)
    (ended,) = await store.tasks.settle(anonymous[1:])

    assert live is None and isinstance(ended, StaleClaim)


async def test_a_lease_is_longer_after_a_heartbeat(store: Store) -> None:
    await given(store)
    (task,) = await claim(store, lease=timedelta(seconds=1))

    await store.tasks.extend([task.claim], timedelta(minutes=10))

    (now,) = await tasks(store)
    assert now.lease_expires_at_ms > task.lease_expires_at_ms + 500_000


async def test_a_lease_that_has_ended_is_not_taken_up_again(store: Store) -> None:
    await given(store)
    (task,) = await claim(store)
    await expire(store)

    (answer,) = await store.tasks.extend([task.claim], LONG)

    assert isinstance(answer, StaleClaim)


@pytest.mark.parametrize(("options", "attempts"), [({}, 5), ({"dlq_after_n": 2}, 2), ({"retry_max": 0}, 1)])
async def test_p12_a_task_that_fails_is_dead_after_its_attempts(
    store: Store, options: dict[str, int], attempts: int
) -> None:
    await given(store, retry_backoff_ms=0, **options)

    count = 0
    while found := await claim(store):
        count += 1
        await settle(store, found[0], Failed("boom"))

    (task,) = await tasks(store)
    assert (count, task.attempts, task.status, task.last_error) == (attempts, attempts, TaskStatus.DLQ, "boom")


async def test_p12_a_worker_that_keeps_dying_still_ends(store: Store) -> None:
    await given(store, dlq_after_n=3)

    claimed = []
    for _ in range(5):
        claimed.append(len(await claim(store)))
        await expire(store)

    (task,) = await tasks(store)
    assert (claimed, task.attempts, task.status) == ([1, 1, 1, 0, 0], 3, TaskStatus.DLQ)
    assert task.last_error == "the lease of attempt 3 ended without an answer"


async def test_p12_what_cannot_succeed_is_dead_at_once(store: Store) -> None:
    await given(store)
    (task,) = await claim(store)

    await settle(store, task, Died("no such account"))

    (dead,) = await tasks(store)
    assert (dead.status, dead.attempts, dead.last_error) == (TaskStatus.DLQ, 1, "no such account")


async def test_p12_a_claimed_task_of_a_removed_reaction_ends(store: Store) -> None:
    await given(store, 2)
    one, _ = await claim(store)
    await store.reactions.remove("rule")

    await settle(store, one, Failed("boom"))
    await expire(store)
    await claim(store)

    assert [(task.status, task.last_error) for task in await tasks(store)] == [(TaskStatus.DLQ, "deregistered")] * 2


async def test_a_task_that_dies_writes_an_entry(store: Store) -> None:
    await given(store)
    (task,) = await claim(store)

    await settle(store, task, Died("boom"))

    (entry,) = (await store.journal.read(GlobalSeq(0), pattern=Pattern("/tape/task/**"))).entries
    assert entry.subject == f"/tape/task/dead/rule/{task.task_id}"
    assert isinstance(entry.payload, dict) and entry.payload["error"] == "boom"
    assert (entry.cause, entry.depth) == (2, 1)


async def test_a_replayed_task_counts_anew_and_keeps_its_fence(store: Store) -> None:
    await given(store)
    (task,) = await claim(store)
    await settle(store, task, Died("boom"))

    replayed = await store.tasks.replay([task.task_id])
    (again,) = await claim(store)

    assert replayed == [task.task_id]
    assert (again.attempt, again.attempts, again.last_error) == (2, 1, "boom")
    assert isinstance(await settle(store, task), StaleClaim)
    page = await store.journal.read(GlobalSeq(0), pattern=Pattern("/tape/task/replayed/**"))
    assert [entry.subject for entry in page.entries] == [f"/tape/task/replayed/rule/{task.task_id}"]


async def test_only_the_dead_are_replayed(store: Store) -> None:
    await given(store, 2)
    done, waiting = await tasks(store)
    (claimed,) = await claim(store, 1)
    await settle(store, claimed)

    assert await store.tasks.replay([done.task_id, waiting.task_id]) == []


async def test_p13_no_more_are_leased_than_may_run_at_once(store: Store, scale: Scale) -> None:
    await given(store, scale(60), max_concurrency=8)
    running: set[str] = set()
    most = 0

    async def dispatch(owner: str) -> None:
        nonlocal most
        while found := await claim(store, 5, owner) or await unfinished(store):
            for task in found:
                running.add(task.task_id)
                most = max(most, len(running))
            await checkpoint()
            for task in found:
                running.discard(task.task_id)
                await settle(store, task)

    async with anyio.create_task_group() as group:
        for number in range(4):
            group.start_soon(dispatch, f"dispatcher{number}")

    assert 1 <= most <= 8
    assert {task.status for task in await tasks(store)} == {TaskStatus.DONE}


async def test_reactions_whose_slots_are_full_hold_up_no_other(store: Store) -> None:
    for number in range(70):
        await store.reactions.register(reaction(f"full{number}", "/a/full", max_concurrency=1))
    await store.reactions.register(reaction("free", "/a/free"))
    await publish(store, 2, "/a/full")
    await match(store)
    await claim(store, 70)
    await publish(store, 1, "/a/free")
    await match(store)

    (task,) = await claim(store, 1)

    assert task.reaction_id == "free"


async def test_p13_a_lease_that_ended_frees_its_slot(store: Store) -> None:
    await given(store, 3, max_concurrency=1)
    (first,) = await claim(store)
    full = await claim(store)

    await expire(store)
    (again,) = await claim(store)

    assert full == [] and again.task_id == first.task_id


async def test_p13_dispatchers_together_start_no_more_than_the_rate_and_a_burst(store: Store) -> None:
    rate, burst, lease = 500, 25, timedelta(minutes=1)
    await given(store, 100, rate_limit_per_s=rate)
    started: list[Task] = []

    async def dispatch(owner: str) -> None:
        while len(started) < 100:
            claimed = await store.tasks.claim(ClaimRequest(owner=owner, limit=100, lease=lease))
            started.extend(claimed.tasks)
            await anyio.sleep((claimed.more_after or timedelta(0)).total_seconds())
        group.cancel_scope.cancel()  # one that found all tasks claimed would sleep until a lease ends

    with anyio.fail_after(DEADLINE_S):
        async with anyio.create_task_group() as group:
            for number in range(4):
                group.start_soon(dispatch, f"dispatcher{number}")

    starts_ms = sorted(
        task.lease_expires_at_ms - lease // timedelta(milliseconds=1) for task in started
    )  # by the clock of the limiter
    windows = [(end - begin + 1, starts_ms[end] - starts_ms[begin]) for end in range(100) for begin in range(end)]
    assert len(started) == 100
    assert [(count, ms) for count, ms in windows if count > burst + rate * ms / 1000] == []


async def test_a_debounced_task_holds_the_newest_event_and_counts_the_others(store: Store) -> None:
    await store.reactions.register(reaction(debounce_ms=60_000))
    for number in range(1, 4):
        await append(store, make_event(n=number, subject="/a/key"))
        await match(store)
    await append(store, make_event(n=9, subject="/a/other"))
    await match(store)

    one, other = await tasks(store)

    assert (one.payload_json, one.coalesced, one.source_global_seq) == ('{"n":3}', 2, 4)
    assert (other.payload_json, other.coalesced) == ('{"n":9}', 0)
    assert await claim(store) == []


async def test_events_of_one_page_are_coalesced_too(store: Store) -> None:
    await given(store, 7, debounce_ms=60_000)

    (task,) = await tasks(store)

    assert (task.payload_json, task.coalesced, task.source_global_seq) == ('{"n":7}', 6, 8)


async def test_the_due_time_of_a_debounced_task_moves_but_not_for_ever(store: Store) -> None:
    await given(store, 1, debounce_ms=60_000)
    (before,) = await tasks(store)
    async with store.transaction() as tx:
        await tx.fetch("UPDATE tape_tasks SET first_at_ms = first_at_ms - 570000", {})

    await publish(store, 1)
    await match(store)

    (after,) = await tasks(store)
    assert after.next_attempt_at_ms == before.created_at_ms + 30_000


async def test_an_event_after_the_claim_makes_a_task_of_its_own(store: Store) -> None:
    await given(store, 1, debounce_ms=60_000)
    await expire(store)
    (claimed,) = await claim(store)

    await publish(store, 1)
    await match(store)

    first, second = await tasks(store)
    assert first == claimed and second.source_global_seq == 3 and second.coalesced == 0


async def test_a_debounced_task_that_failed_coalesces_no_more(store: Store) -> None:
    await given(store, 1, debounce_ms=60_000)
    await expire(store)
    (claimed,) = await claim(store)
    await settle(store, claimed, Failed("boom"))

    await publish(store, 1)
    await match(store)

    assert [task.attempts for task in await tasks(store)] == [1, 0]


@pytest.mark.parametrize("minutes", [-10, 10])
async def test_where_there_is_a_server_the_clock_of_a_worker_changes_nothing(
    backend: Backend, store: Store, monkeypatch: pytest.MonkeyPatch, minutes: int
) -> None:
    if backend.name != "postgres":
        return
    await given(store, 2, retry_backoff_ms=60_000)
    (held_task,) = await claim(store, 1)
    (failed,) = await claim(store, 1)
    monkeypatch.setattr("tape.store.tasks.now_ms", lambda: now_ms() + minutes * 60_000)

    await settle(store, failed, Failed("boom"))
    stolen = await claim(store, owner="you")
    (extended,) = await store.tasks.extend([held_task.claim], LONG)

    (now,) = await tasks(store, status=TaskStatus.CLAIMED)
    assert stolen == [] and extended is None
    assert abs(now.lease_expires_at_ms - held_task.lease_expires_at_ms) < 30_000


async def test_done_tasks_can_be_forgotten_and_are_not_made_again(store: Store) -> None:
    await given(store, 2)
    (task,) = await claim(store, 1)
    await settle(store, task)

    gone = await store.tasks.forget(before_ms=1 << 60)
    await match(store)

    assert gone == 1 and len(await tasks(store)) == 1


async def test_a_node_forgets_what_was_done_long_ago_and_keeps_what_is_dead(store: Store) -> None:
    await given(store, 3)
    done, dead, recent = await claim(store, 3)
    await settle(store, done)
    await settle(store, dead, Died("no such account"))
    async with store.transaction() as tx:
        await tx.fetch("UPDATE tape_tasks SET completed_at_ms = 1 WHERE status IN (3, 5)", {})
    await settle(store, recent)

    async with background(partial(run_retention, store, every=timedelta(milliseconds=10))):
        with anyio.fail_after(DEADLINE_S):
            while await store.tasks.find(done.task_id) is not None:
                await checkpoint()

    assert {task.task_id for task in await tasks(store)} == {dead.task_id, recent.task_id}


async def unfinished(store: Store) -> list[Task]:
    """Nothing to do just now, but what others hold may come back."""
    while any(task.status is TaskStatus.CLAIMED for task in await tasks(store)):
        await checkpoint()
        if found := await claim(store, 5, "last"):
            return found
    return []


@pytest.mark.parametrize("error", ["before\0after", "before\ud800after"])
async def test_a_task_that_fails_with_what_is_no_text_is_settled_all_the_same(store: Store, error: str) -> None:
    await given(store)
    (task,) = await claim(store)

    refused = await settle(store, task, Died(error))
    (dead,) = await tasks(store)

    assert refused is None and dead.status is TaskStatus.DLQ
    assert dead.last_error.startswith("before") and dead.last_error.endswith("after")


async def test_a_name_that_is_no_text_is_refused_and_not_a_fault(store: Store) -> None:
    with pytest.raises(UsageError, match="lone surrogate"):
        await store.tasks.find(TaskId("\udcff"))
    with pytest.raises(UsageError, match="lone surrogate"):
        await store.reactions.remove("\udcff")

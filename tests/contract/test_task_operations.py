"""The operations of tasks, in this process and over gRPC."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import grpc
import pytest

from tape.bus.journal import Journal
from tape.core.errors import InvalidCursor, NotFound, StaleClaim, UsageError
from tape.core.page import ANSWER_BYTES
from tape.core.ports import Store
from tape.core.task import Task, TaskStatus
from tape.matcher.matcher import Matcher
from tape.sdk.nouns.node import AsyncNode
from tape.wire import tape_pb2 as pb
from tests.contract.backends import needs_ledgers
from tests.contract.reactions import RecordingSlots, catch_up, match, publish, reaction
from tests.contract.serving import served
from tests.servers.grpc_stub import TapeStub

pytestmark = needs_ledgers


async def matched(store: Store, count: int, **options: object) -> None:
    await store.reactions.register(reaction(retry_backoff_ms=0, **options))  # type: ignore[arg-type]
    await publish(store, count)
    await match(store)


async def claimed(node: AsyncNode, store: Store, **options: object) -> Task:
    await matched(store, 1, **options)
    (task,) = (await node.tasks.claim("me")).tasks
    return task


async def test_tasks_are_listed_by_reaction_and_status_in_pages(node: AsyncNode, store: Store) -> None:
    await matched(store, 3)
    await store.reactions.register(reaction("other"))
    await match(store)
    (task, *_) = (await node.tasks.claim("me", reaction_ids=["rule"], limit=1)).tasks
    await node.tasks.complete(task.task_id, "me", task.attempt)

    first = await node.tasks.list("rule", limit=2)
    last = await node.tasks.list("rule", limit=2, cursor=first.next_cursor)
    done = await node.tasks.list(status=TaskStatus.DONE)
    bare = await node.tasks.list(without_payloads=True)

    assert [each.source_seq for each in (*first.rows, *last.rows)] == [3, 2, 1] and len(first.rows) == 2
    assert [each.task_id for each in done.rows] == [task.task_id]
    assert len(bare.rows) == 6 and {each.payload_json for each in bare.rows} == {""}
    with pytest.raises(InvalidCursor):
        await node.tasks.list("other", cursor=first.next_cursor)


async def test_a_task_is_shown_with_its_deaths_and_replays(node: AsyncNode, store: Store) -> None:
    task = await claimed(node, store)
    await node.tasks.nack(task.task_id, "me", task.attempt, error="poison", permanent=True)
    replayed = await node.tasks.replay([task.task_id])

    found = await node.tasks.get(task.task_id)

    assert list(replayed) == [task.task_id] and found.task == await store.tasks.find(task.task_id)
    assert [(event.type, event.error) for event in found.life] == [("dead", "poison"), ("replayed", "poison")]
    with pytest.raises(NotFound, match="there is no task 'none'"):
        await node.tasks.get("none")


async def test_dead_tasks_are_replayed_by_name_by_reaction_or_all(node: AsyncNode, store: Store) -> None:
    await matched(store, 4)
    names = [task.task_id for task in (await node.tasks.claim("me")).tasks]

    async def die() -> None:
        for task in (await node.tasks.claim("me", limit=100)).tasks:
            await node.tasks.nack(task.task_id, "me", permanent=True)

    for name in names:
        await node.tasks.nack(name, "me", permanent=True)
    named = await node.tasks.replay([names[0], "none"])
    await die()
    limited = await node.tasks.replay(reaction_id="rule", limit=3)
    of_another = await node.tasks.replay(reaction_id="other")
    rest = await node.tasks.replay()

    assert (list(named), len(limited), list(of_another), len(rest)) == ([names[0]], 3, [], 1)
    with pytest.raises(UsageError, match="not both"):
        await node.tasks.replay(names, reaction_id="rule")


async def test_a_claim_is_extended_and_taken_up_again(node: AsyncNode, store: Store) -> None:
    task = await claimed(node, store)

    longer = await node.tasks.extend(task.task_id, "me", task.attempt, timedelta(seconds=600))
    mine = await node.tasks.claim("me", task_ids=[task.task_id])
    others = await node.tasks.claim("you", task_ids=[task.task_id])

    assert longer.lease_expires_at_ms > task.lease_expires_at_ms
    assert [(each.task_id, each.attempt) for each in mine.tasks] == [(task.task_id, task.attempt)]
    assert others.tasks == ()


@pytest.mark.parametrize("is_claimed_as_matched", [False, True])
async def test_a_completion_may_be_repeated_by_the_same_attempt_only(
    node: AsyncNode, store: Store, is_claimed_as_matched: bool
) -> None:
    if is_claimed_as_matched:
        slots = RecordingSlots()
        await store.reactions.register(reaction())
        await publish(store, 2)
        await catch_up(Matcher(store, slots=slots))
        task, owner = slots.started[0], "slots"
    else:
        task, owner = await claimed(node, store), "me"

    done = [await node.tasks.complete(task.task_id, owner, task.attempt) for _ in range(3)]

    assert done[0].status is TaskStatus.DONE and done == done[:1] * 3
    for stranger, attempt in (("you", task.attempt), (owner, task.attempt + 1)):
        with pytest.raises(StaleClaim):
            await node.tasks.complete(task.task_id, stranger, attempt)
    with pytest.raises(StaleClaim):
        await node.tasks.nack(task.task_id, owner, task.attempt, error="late")


@pytest.mark.parametrize("permanent", [False, True])
async def test_a_failure_may_be_repeated_with_the_same_error_until_the_next_attempt(
    node: AsyncNode, store: Store, permanent: bool
) -> None:
    task = await claimed(node, store)

    failed = [
        await node.tasks.nack(task.task_id, "me", task.attempt, error="no\0", permanent=permanent) for _ in range(2)
    ]

    assert failed[0] == failed[1] and failed[0].attempt == 1
    assert failed[0].status is (TaskStatus.DLQ if permanent else TaskStatus.PENDING)
    for error, owner in (("another", "me"), ("no\0", "you")):
        with pytest.raises(StaleClaim):
            await node.tasks.nack(task.task_id, owner, task.attempt, error=error, permanent=permanent)
    if not permanent:
        await node.tasks.claim("me")
        with pytest.raises(StaleClaim):
            await node.tasks.nack(task.task_id, "me", task.attempt, error="no\0")


async def test_a_retried_task_is_no_repetition_of_a_final_failure(node: AsyncNode, store: Store) -> None:
    task = await claimed(node, store)
    await node.tasks.nack(task.task_id, "me", task.attempt, error="no")

    for options in ({"permanent": True}, {"release": True}):
        with pytest.raises(StaleClaim):
            await node.tasks.nack(task.task_id, "me", task.attempt, error="no", **options)


async def test_more_bytes_than_an_answer_carries_are_not_claimed(node: AsyncNode, store: Store) -> None:
    await matched(store, 1)

    found = await node.tasks.claim("me", max_bytes=ANSWER_BYTES * 100)

    assert len(found.tasks) == 1
    with pytest.raises(UsageError, match="max_bytes"):
        await node.tasks.claim("me", max_bytes=-1)


@pytest.fixture
async def tape(store: Store, journal: Journal) -> AsyncIterator[Any]:
    async with served(store, journal) as url, grpc.aio.insecure_channel(url.removeprefix("tape://")) as channel:
        yield TapeStub(channel)


@pytest.mark.parametrize(
    ("call", "request_"),
    [
        ("RegisterReaction", pb.Reaction(reaction_id="rule")),
        ("RegisterReaction", pb.Reaction(reaction_id="rule", agent_app="a")),
        ("RegisterReaction", pb.Reaction(reaction_id="rule", handler_kind=2, retry_max=-1)),  # type: ignore[arg-type]
        ("RegisterReaction", pb.Reaction(reaction_id="rule", handler_kind=2, num_shards=-1)),  # type: ignore[arg-type]
        ("ListReactions", pb.ListReactionsRequest(limit=-1)),
        ("ListTasks", pb.ListTasksRequest(limit=-1)),
        ("ListTasks", pb.ListTasksRequest(status=9)),  # type: ignore[arg-type]
        ("ClaimTasks", pb.ClaimTasksRequest(owner="me", max=-1)),
        ("ClaimTasks", pb.ClaimTasksRequest(owner="me", lease_ms=-1)),
        ("ReplayTasks", pb.ReplayTasksRequest(limit=-1)),
    ],
)
async def test_what_makes_no_sense_is_refused(tape: Any, call: str, request_: Any) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await getattr(tape, call)(request_)

    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_progress_is_in_the_answers_to_those_who_ask(tape: Any, store: Store) -> None:
    await tape.RegisterReaction(pb.Reaction(reaction_id="rule", handler_kind=pb.HANDLER_KIND_TASK))
    await publish(store, 2)
    await match(store)

    (without,) = (await tape.ListReactions(pb.ListReactionsRequest())).reactions
    (listed,) = (await tape.ListReactions(pb.ListReactionsRequest(with_progress=True))).reactions

    assert (without.last_global_seq, listed.last_global_seq) == (0, 3)
    assert listed == await tape.GetReaction(pb.GetReactionRequest(reaction_id="rule"))

"""Reactions and tasks over gRPC, as workers in other languages would have them."""

from collections.abc import Iterator
from typing import Any

import anyio
import grpc
import pytest

from tape.bridges.peers import peer_connections
from tape.compose import dispatch, register
from tape.core.errors import UsageError
from tape.core.reaction import Reaction
from tape.matcher.dispatcher import WorkerConfig
from tape.wire import tape_pb2 as pb
from tape.work.envelope import Envelope
from tape.work.handler import handler
from tests.deadlines import DEADLINE_S
from tests.process.processes import until
from tests.server.server import TapeServer
from tests.servers.grpc_stub import TapeStub

pytestmark = pytest.mark.parametrize("store_url", ["sqlite", "postgres"], indirect=True, scope="module")


@pytest.fixture
def tape(server: TapeServer) -> Iterator[Any]:
    with grpc.insecure_channel(server.rpc.removeprefix("tape://")) as channel:
        yield TapeStub(channel)


@pytest.fixture
def reaction(tape: Any, run_id: str) -> pb.Reaction:
    """A reaction to the events of one run."""
    asked = pb.Reaction(
        reaction_id=f"of-{run_id}",
        subject_pattern=f"/tape/event/*/{run_id}",
        handler_kind=pb.HANDLER_KIND_TASK,
        bootstrap_from_head=True,
        max_concurrency=10,
        retry_backoff_ms=1,
    )
    return tape.RegisterReaction(asked)  # type: ignore[no-any-return]


def publish(tape: Any, run_id: str, *payloads: int) -> None:
    events = [pb.Event(run_id=run_id, payload_json=str(payload)) for payload in payloads]
    tape.Append(pb.AppendRequest(events=events, open=True), timeout=DEADLINE_S)


def claimed(tape: Any, reaction: pb.Reaction, owner: str, count: int) -> list[pb.Task]:
    """So many tasks, as soon as there are."""
    asked = pb.ClaimTasksRequest(reaction_id=reaction.reaction_id, shard=-1, owner=owner, max=count)
    found: list[pb.Task] = []

    def is_enough() -> bool:
        found.extend(tape.ClaimTasks(asked).tasks)
        return len(found) >= count

    until(is_enough, f"{count} tasks of {reaction.reaction_id}")
    return found


def status(call: Any, request: Any) -> Any:
    with pytest.raises(grpc.RpcError) as caught:
        call(request, timeout=DEADLINE_S)
    return caught.value.code()


def test_a_reaction_is_registered_with_what_is_usual(tape: Any, reaction: pb.Reaction) -> None:
    listed = tape.ListReactions(pb.ListReactionsRequest(subject_pattern=reaction.subject_pattern)).reactions

    assert list(listed) == [reaction]
    assert (reaction.handler_kind, reaction.num_shards, reaction.retry_max) == (pb.HANDLER_KIND_TASK, 1, 5)
    assert (reaction.dlq_after_n, reaction.deleted, reaction.created_at_ms > 0) == (5, False, True)


def test_a_reaction_that_cannot_be_is_refused(tape: Any) -> None:
    bad = pb.Reaction(reaction_id="bad", predicate_cel="1 +", handler_kind=pb.HANDLER_KIND_TASK)
    unspecified = pb.Reaction(reaction_id="bad")

    for each in (bad, unspecified):
        assert status(tape.RegisterReaction, each) is grpc.StatusCode.INVALID_ARGUMENT


def test_a_reaction_is_deregistered_once(tape: Any, reaction: pb.Reaction) -> None:
    asked = pb.DeregisterReactionRequest(reaction_id=reaction.reaction_id)

    answers = [tape.DeregisterReaction(asked).deregistered for _ in range(2)]

    assert answers == [True, False]


def test_a_matching_event_becomes_a_task_that_is_claimed_and_completed(
    tape: Any, reaction: pb.Reaction, run_id: str
) -> None:
    publish(tape, run_id, 7)

    (task,) = claimed(tape, reaction, "w1", 1)
    done = tape.CompleteTask(pb.CompleteTaskRequest(task_id=task.task_id, owner="w1", attempt=task.attempt)).task

    assert (task.payload_json, task.source_run_id, task.attempt, task.attempts) == ("7", run_id, 1, 1)
    assert (task.status, done.status) == (pb.TASK_STATUS_CLAIMED, pb.TASK_STATUS_DONE)


def test_only_the_newest_attempt_settles(tape: Any, reaction: pb.Reaction, run_id: str) -> None:
    publish(tape, run_id, 1)
    (first,) = claimed(tape, reaction, "w1", 1)
    tape.NackTask(pb.NackTaskRequest(task_id=first.task_id, owner="w1", error="no", attempt=1))
    (second,) = claimed(tape, reaction, "w1", 1)

    stale = pb.CompleteTaskRequest(task_id=first.task_id, owner="w1", attempt=1)
    stranger = pb.CompleteTaskRequest(task_id=first.task_id, owner="w2", attempt=2)

    assert (second.attempt, second.last_error) == (2, "no")
    assert {status(tape.CompleteTask, each) for each in (stale, stranger)} == {grpc.StatusCode.ABORTED}
    assert tape.CompleteTask(pb.CompleteTaskRequest(task_id=first.task_id, owner="w1")).task.status == 3


def test_what_fails_for_good_is_in_the_dead_letters(tape: Any, reaction: pb.Reaction, run_id: str) -> None:
    publish(tape, run_id, 1)
    (task,) = claimed(tape, reaction, "w1", 1)

    tape.NackTask(pb.NackTaskRequest(task_id=task.task_id, owner="w1", error="poison", permanent=True, attempt=1))
    dead = tape.ListTasks(pb.ListTasksRequest(reaction_id=reaction.reaction_id, status=pb.TASK_STATUS_DLQ)).tasks

    assert [(each.task_id, each.last_error) for each in dead] == [(task.task_id, "poison")]


def test_a_claim_is_extended_and_found_again(tape: Any, reaction: pb.Reaction, run_id: str) -> None:
    publish(tape, run_id, 1)
    (task,) = claimed(tape, reaction, "w1", 1)

    longer = tape.ExtendTask(
        pb.ExtendTaskRequest(task_id=task.task_id, owner="w1", attempt=task.attempt, lease_ms=600_000)
    ).task
    mine = tape.ClaimTasks(pb.ClaimTasksRequest(owner="w1", task_ids=[task.task_id], lease_ms=300_000)).tasks
    others = tape.ClaimTasks(pb.ClaimTasksRequest(owner="w2", task_ids=[task.task_id])).tasks

    assert longer.lease_expires_at_ms > task.lease_expires_at_ms
    assert [(each.task_id, each.attempt) for each in mine] == [(task.task_id, task.attempt)] and not others


def test_a_claim_without_an_owner_is_refused(tape: Any) -> None:
    assert status(tape.ClaimTasks, pb.ClaimTasksRequest(shard=-1)) is grpc.StatusCode.INVALID_ARGUMENT


async def test_a_dispatcher_far_away_handles_what_the_server_matches(server: TapeServer, run_id: str) -> None:
    handled: list[tuple[str, int]] = []

    async def handle(envelope: Envelope) -> None:
        handled.append((str(envelope.payload), envelope.attempt))
        if envelope.payload == 2 and envelope.attempt == 1:
            raise ConnectionError("not now")

    reaction = Reaction(
        reaction_id=f"far-{run_id}",
        subject_pattern=f"/tape/event/*/{run_id}",
        bootstrap_from_head=True,
        max_concurrency=10,
        retry_backoff_ms=0,
    )
    config = WorkerConfig(reactions=(reaction,), handlers={reaction.reaction_id: handler(handle)})
    await register(server.rpc, [reaction])
    async with server.async_client() as http:
        await http.post("/runs", json={"run_id": run_id})
        await http.post(f"/runs/{run_id}/events", json=[{"payload": 1}, {"payload": 2}])

    settled = 0
    with anyio.fail_after(DEADLINE_S):
        while settled < 3:
            settled += await dispatch(server.rpc, config, once=True)

    assert sorted(handled) == [("1", 1), ("2", 1), ("2", 2)]


async def test_a_bridge_far_away_is_refused(server: TapeServer) -> None:
    peer = peer_connections({"hook": {"url": "https://a.example", "secret": "whsec_" + "A" * 32}})["hook"]

    with pytest.raises(UsageError, match="beside its store"):
        await dispatch(server.rpc, WorkerConfig(handlers={}, peers=(peer,)), once=True)

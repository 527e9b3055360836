"""Procedures of tasks."""

from collections.abc import Iterable, Sequence
from datetime import timedelta

from tape.core.caller import Caller
from tape.core.claim import WORK_LEASE, check_owner
from tape.core.errors import NotFound, StaleClaim, UsageError
from tape.core.page import ANSWER_BYTES, decode_cursor
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
    rest_of,
)
from tape.core.text import check_name
from tape.server.grpc.hall import Hall, bounded, span
from tape.wire import tape_pb2 as pb
from tape.wire.message_mapping import duration
from tape.wire.messages.tasks import TASK

USUAL_CLAIM = 16
LIMIT = 200


async def claim_tasks(hall: Hall, request: pb.ClaimTasksRequest, caller: Caller) -> pb.ClaimTasksResponse:
    lease = span(request.lease_ms, WORK_LEASE)
    for name in (*request.task_ids, *request.reaction_ids, request.reaction_id):
        check_name("an id", name, may_be_empty=True)
    if request.task_ids:
        return pb.ClaimTasksResponse(tasks=map(TASK.message, await _again(hall, request, lease)))
    want = ClaimRequest(
        owner=request.owner,
        limit=bounded(request.max, USUAL_CLAIM),
        reaction_ids=[*request.reaction_ids, *([request.reaction_id] if request.reaction_id else [])],
        shard=max(request.shard, -1),
        lease=lease,
        max_bytes=_room(request),
    )
    claimed = await hall.store.tasks.claim(want)
    wait = None if claimed.more_after is None else claimed.more_after // timedelta(milliseconds=1)
    return pb.ClaimTasksResponse(tasks=map(TASK.message, claimed.tasks), more_after_ms=wait)


async def extend_task(hall: Hall, request: pb.ExtendTaskRequest, caller: Caller) -> pb.ExtendTaskResponse:
    claim = TaskClaim(TaskId(request.task_id), check_owner(request.owner), request.attempt)
    await _known(hall, claim.task_id)
    _check(await hall.store.tasks.extend([claim], span(request.lease_ms, WORK_LEASE)))
    return pb.ExtendTaskResponse(task=TASK.message(await _known(hall, claim.task_id)))


async def complete_task(hall: Hall, request: pb.CompleteTaskRequest, caller: Caller) -> pb.CompleteTaskResponse:
    claim = TaskClaim(TaskId(request.task_id), check_owner(request.owner), request.attempt)
    return pb.CompleteTaskResponse(task=await _settled(hall, claim, Done()))


async def nack_task(hall: Hall, request: pb.NackTaskRequest, caller: Caller) -> pb.NackTaskResponse:
    claim = TaskClaim(TaskId(request.task_id), check_owner(request.owner), request.attempt)
    return pb.NackTaskResponse(task=await _settled(hall, claim, _outcome(request)))


async def list_tasks(hall: Hall, request: pb.ListTasksRequest, caller: Caller) -> pb.ListTasksResponse:
    limit = bounded(request.limit, LIMIT)
    found = await hall.store.tasks.listed(
        reaction_id=request.reaction_id,
        status=request.status,
        limit=limit,
        before=decode_cursor(request.cursor, int, str),
        max_bytes=ANSWER_BYTES,
    )
    return pb.ListTasksResponse(tasks=map(TASK.message, found), next_cursor=rest_of(found, limit, ANSWER_BYTES))


async def _again(hall: Hall, request: pb.ClaimTasksRequest, lease: timedelta) -> list[Task]:
    """The owner's own live claims among those it names, leased anew: the first that one answer carries."""
    owner = check_owner(request.owner)
    claims = [TaskClaim(task_id, owner, 0) for task_id in await _carried(hall, request.task_ids, owner, _room(request))]
    refused = await hall.store.tasks.extend(claims, lease)
    return [await _known(hall, claim.task_id) for claim, stale in zip(claims, refused, strict=True) if stale is None]


async def _carried(hall: Hall, task_ids: Iterable[str], owner: str, room: int) -> list[TaskId]:
    """Those of the owner's claims that fit into one answer."""
    carried: list[TaskId] = []
    for task_id in dict.fromkeys(task_ids):
        task = await hall.store.tasks.find(TaskId(task_id))
        if task is not None and task.lease_owner == owner and task.status is TaskStatus.CLAIMED:
            room -= task.size
            if room < 0:
                break
            carried.append(task.task_id)
    return carried


def _room(request: pb.ClaimTasksRequest) -> int:
    """The bytes of tasks that the answer may carry."""
    if request.max_bytes < 0:
        raise UsageError(f"max_bytes is at least 1, or 0 for as much as an answer carries, not {request.max_bytes}")
    return min(request.max_bytes or ANSWER_BYTES, ANSWER_BYTES)


async def _settled(hall: Hall, claim: TaskClaim, outcome: Outcome) -> pb.Task:
    await _known(hall, claim.task_id)
    _check(await hall.store.tasks.settle([Settlement(claim, outcome)]))
    return TASK.message(await _known(hall, claim.task_id))


async def _known(hall: Hall, task_id: TaskId) -> Task:
    task = await hall.store.tasks.find(task_id)
    if task is None:
        raise NotFound(f"there is no task {task_id!r}")
    return task


def _check(refused: Sequence[StaleClaim | None]) -> None:
    for stale in refused:
        if stale is not None:
            raise stale


def _outcome(request: pb.NackTaskRequest) -> Outcome:
    if request.release:
        return Released()
    if request.permanent:
        return Died(request.error)
    has_wait = request.HasField("retry_after_ms")
    return Failed(request.error, duration(request.retry_after_ms) if has_wait else None)

"""`/tasks`: list tasks, show one with its history, and replay dead ones."""

from typing import Final

import msgspec

from tape.core.errors import NotFound, NotReady, UsageError, quoted
from tape.core.explanation import TaskDetail as TaskHistory
from tape.core.page import encode_cursor
from tape.core.reaction import check_reaction_id
from tape.core.task import TaskStatus
from tape.core.text import MAX_NAME
from tape.matcher.explained import event_fields
from tape.operations.tasks import GetTask, ListTasks, ReplayTasks
from tape.server.http.request import Request
from tape.server.http.response import Response
from tape.server.http.route import Parameter, ResponseSpec, Route, respond_with
from tape.server.node import Node
from tape.server.routes.bounded import fit
from tape.server.routes.parameters import CURSOR, LIMIT, limit_of
from tape.server.routes.schemas import Id, parse_body
from tape.server.routes.work_schemas import (
    LifecycleEvent,
    Payload,
    Replay,
    Replayed,
    Status,
    TaskDetail,
    TaskName,
    TaskRow,
    Tasks,
)

DEFAULT_LIMIT: Final = 200
PAYLOADS: Final = ("whole", "none")
STATUSES: Final = {each.name.lower(): each for each in TaskStatus if each is not TaskStatus.FAILED}


async def list_tasks(request: Request, node: Node) -> Response:
    """Newest first, filtered by reaction and status."""
    reaction_id = request.parameter("reaction_id")
    asked = ListTasks(
        reaction_id="" if reaction_id is None else check_reaction_id(reaction_id),
        status=_status(request.parameter("status")),
        limit=limit_of(request, DEFAULT_LIMIT),
        cursor=request.parameter("cursor") or "",
        without_payloads=not _has_payloads(request.parameter("payload")),
    )
    page = await node.operations.call(asked)
    tasks = fit(TaskRow.of(row) for row in page.rows)  # JSON in JSON takes more bytes than the store counts
    is_cut = len(tasks) < len(page.rows)
    rest = encode_cursor(page.rows[len(tasks) - 1].place, asked.question) if is_cut else page.next_cursor
    return Response.json(Tasks(tasks=tasks, next_cursor=rest))


async def show_task(request: Request, node: Node) -> Response:
    found = await _find(request, node)
    life = [msgspec.convert(event_fields(event), LifecycleEvent) for event in found.life]
    return Response.json(TaskDetail(task=TaskRow.of(found.task), life=life))


async def replay_task(request: Request, node: Node) -> Response:
    """Makes one dead task pending again."""
    task = (await _find(request, node)).task
    replayed = (await node.operations.call(ReplayTasks(task_ids=(task.task_id,)))).task_ids
    if not replayed:
        raise NotReady(f"task {task.task_id!r} is {task.status.name.lower()}, and only a dead task can be replayed")
    return Response.json(Replayed(replayed=list(replayed)))


async def replay_tasks(request: Request, node: Node) -> Response:
    """Makes the named dead tasks pending again, or those of a reaction, or all."""
    replay: Replay = parse_body(await request.json(), Replay)
    if replay.task_ids and replay.reaction_id is not None:
        raise UsageError("name tasks or a reaction, not both")
    named = tuple(name for name in replay.task_ids if name.isprintable())
    if replay.task_ids and not named:
        return Response.json(Replayed(replayed=[]))
    asked = ReplayTasks(task_ids=named, reaction_id=replay.reaction_id or "", limit=replay.limit)
    return Response.json(Replayed(replayed=list((await node.operations.call(asked)).task_ids)))


async def _find(request: Request, node: Node) -> TaskHistory:
    task_id = request.values["task_id"]
    if not task_id.isprintable() or len(task_id) > MAX_NAME:
        raise NotFound(f"there is no task {quoted(task_id)}")
    return await node.operations.call(GetTask(task_id=task_id))


def _status(text: str | None) -> TaskStatus | None:
    if text is not None and text not in STATUSES:
        raise UsageError(f"status is {', '.join(STATUSES)}, not {quoted(text)}")
    return None if text is None else STATUSES[text]


def _has_payloads(text: str | None) -> bool:
    if text not in (None, *PAYLOADS):
        raise UsageError(f"payload is {' or '.join(PAYLOADS)}, not {quoted(text)}")
    return text != "none"


_TASK: Final = Parameter(name="task_id", location="path", schema=TaskName, description="The task.")
_FILTERS: Final = (
    Parameter(name="reaction_id", location="query", schema=Id, description="Only tasks of one reaction."),
    Parameter(name="status", location="query", schema=Status, description="Only tasks with one status."),
    LIMIT,
    CURSOR,
    Parameter(name="payload", location="query", schema=Payload, description="With none, payloads are left out."),
)

ROUTES: Final = (
    Route(
        method="GET", path="/tasks", name="listTasks", summary="List tasks, newest first",
        handler=respond_with(list_tasks), parameters=_FILTERS, response=ResponseSpec(schema=Tasks), problems=(400, 503),
    ),
    Route(
        method="POST", path="/tasks/replay", name="replayTasks", summary="Replay dead tasks",
        handler=respond_with(replay_tasks), body=Replay, response=ResponseSpec(schema=Replayed),
        problems=(400, 413, 415, 503),
    ),
    Route(
        method="GET", path="/tasks/{task_id}", name="showTask", summary="Show a task and its history",
        handler=respond_with(show_task), parameters=(_TASK,), response=ResponseSpec(schema=TaskDetail),
        problems=(400, 404, 503),
    ),
    Route(
        method="POST", path="/tasks/{task_id}/replay", name="replayTask", summary="Replay a dead task",
        handler=respond_with(replay_task), parameters=(_TASK,), response=ResponseSpec(schema=Replayed),
        problems=(400, 404, 409, 503),
    ),
)  # fmt: skip

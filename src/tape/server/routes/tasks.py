"""`/tasks`: list tasks, show one with its history, and replay dead ones."""

from typing import Final

import msgspec

from tape.core.errors import NotFound, NotReady, UsageError, quoted
from tape.core.page import ANSWER_BYTES, decode_cursor, encode_cursor
from tape.core.task import Task as TaskRow, TaskId, TaskStatus, rest_of
from tape.matcher.explain import task_history
from tape.matcher.explained import entry_fields
from tape.server.http.request import Request
from tape.server.http.response import Response
from tape.server.http.route import Parameter, ResponseSpec, Route, respond_with
from tape.server.node import Node
from tape.server.routes.bounded import fit
from tape.server.routes.parameters import CURSOR, LIMIT, limit_of
from tape.server.routes.reactions import check_id, store_of
from tape.server.routes.schemas import Id, parse_body
from tape.server.routes.work_schemas import (
    LifecycleEvent,
    Payload,
    Replay,
    Replayed,
    Status,
    Task,
    TaskDetail,
    TaskName,
    Tasks,
)

DEFAULT_LIMIT: Final = 200
PAYLOADS: Final = ("whole", "none")
STATUSES: Final = {"pending": 1, "claimed": 2, "done": 3, "dlq": 5}


async def list_tasks(request: Request, node: Node) -> Response:
    """Newest first, filtered by reaction and status."""
    reaction_id, limit = request.parameter("reaction_id"), limit_of(request, DEFAULT_LIMIT)
    found = await store_of(node).tasks.listed(
        reaction_id="" if reaction_id is None else check_id(reaction_id),
        status=_status(request.parameter("status")),
        limit=limit,
        before=decode_cursor(request.parameter("cursor") or "", int, str),
        max_bytes=ANSWER_BYTES,
        is_bare=not _has_payloads(request.parameter("payload")),
    )
    tasks = fit(Task.of(row) for row in found)  # JSON in JSON takes more bytes than the store counts
    is_cut = len(tasks) < len(found)
    rest = encode_cursor(found[len(tasks) - 1].place) if is_cut else rest_of(found, limit, ANSWER_BYTES)
    return Response.json(Tasks(tasks=tasks, next_cursor=rest))


async def show_task(request: Request, node: Node) -> Response:
    row = await _find(request, node)
    life = [msgspec.convert(entry_fields(entry), LifecycleEvent) for entry in await task_history(node.journal, row)]
    return Response.json(TaskDetail(task=Task.of(row), life=life))


async def replay_task(request: Request, node: Node) -> Response:
    """Makes one dead task pending again."""
    row = await _find(request, node)
    replayed = await store_of(node).tasks.replay([row.task_id])
    if not replayed:
        raise NotReady(
            f"task {row.task_id!r} is {TaskStatus(row.status).name.lower()}, and only a dead task can be replayed"
        )
    return Response.json(Replayed(replayed=list(replayed)))


async def replay_tasks(request: Request, node: Node) -> Response:
    """Makes the named dead tasks pending again, or those of a reaction, or all."""
    replay: Replay = parse_body(await request.json(), Replay)
    if replay.task_ids and replay.reaction_id is not None:
        raise UsageError("name tasks or a reaction, not both")
    tasks = store_of(node).tasks
    named = [TaskId(name) for name in replay.task_ids if name.isprintable()]
    if not replay.task_ids:
        named = list(await tasks.dead(replay.reaction_id or "", replay.limit))
    return Response.json(Replayed(replayed=list(await tasks.replay(named))))


async def _find(request: Request, node: Node) -> TaskRow:
    task_id = request.values["task_id"]
    row = await store_of(node).tasks.find(TaskId(task_id)) if task_id.isprintable() else None
    if row is None:
        raise NotFound(f"there is no task {quoted(task_id)}")
    return row


def _status(text: str | None) -> int:
    if text is not None and text not in STATUSES:
        raise UsageError(f"status is {', '.join(STATUSES)}, not {quoted(text)}")
    return STATUSES[text] if text is not None else 0


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

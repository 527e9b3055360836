"""`/tasks`: list them, look at one with its life, and give the dead another chance."""

from typing import Final

import msgspec

from tape.core.errors import NotFound, NotReady, UsageError, quoted
from tape.core.page import ANSWER_BYTES, decode_cursor
from tape.core.task import Task as TaskRow, TaskId, TaskStatus, rest_of
from tape.matcher.explain import life_of
from tape.matcher.explained import event_facts
from tape.server.http.request import Request
from tape.server.http.response import Response
from tape.server.node import Node
from tape.server.routes.reactions import check_id, working
from tape.server.routes.shapes import shaped
from tape.server.routes.work_shapes import Happening, Replay, Replayed, Task, TaskDetail, Tasks

USUAL: Final = 200
MOST: Final = 1000
PAYLOADS: Final = ("whole", "none")
STATUSES: Final = {"pending": 1, "claimed": 2, "done": 3, "dlq": 5}


async def list_tasks(request: Request, node: Node) -> Response:
    """The newest first, of a reaction or of all, of a status or of any."""
    reaction_id, limit = request.parameter("reaction_id"), _limit(request.parameter("limit"))
    found = await working(node).tasks.listed(
        reaction_id="" if reaction_id is None else check_id(reaction_id),
        status=_status(request.parameter("status")),
        limit=limit,
        before=decode_cursor(request.parameter("cursor") or "", int, str),
        max_bytes=ANSWER_BYTES,
        is_bare=not _has_payloads(request.parameter("payload")),
    )
    rest = rest_of(found, limit, ANSWER_BYTES)
    return Response.json(Tasks(tasks=[Task.of(row) for row in found], next_cursor=rest))


async def show_task(request: Request, node: Node) -> Response:
    row = await _found(request, node)
    life = [msgspec.convert(event_facts(entry), Happening) for entry in await life_of(node.journal, row)]
    return Response.json(TaskDetail(task=Task.of(row), life=life))


async def replay_task(request: Request, node: Node) -> Response:
    """Makes one dead task pending again."""
    row = await _found(request, node)
    replayed = await working(node).tasks.replay([row.task_id])
    if not replayed:
        raise NotReady(
            f"task {row.task_id!r} is {TaskStatus(row.status).name.lower()}, and only a dead one is replayed"
        )
    return Response.json(Replayed(replayed=list(replayed)))


async def replay_tasks(request: Request, node: Node) -> Response:
    """Makes the named dead tasks pending again, or those of a reaction, or all."""
    asked: Replay = shaped(await request.json(), Replay)
    if asked.task_ids and asked.reaction_id is not None:
        raise UsageError("name tasks or a reaction, not both")
    tasks = working(node).tasks
    named = [TaskId(name) for name in asked.task_ids if name.isprintable()]
    if not asked.task_ids:
        named = list(await tasks.dead(asked.reaction_id or "", asked.limit))
    return Response.json(Replayed(replayed=list(await tasks.replay(named))))


async def _found(request: Request, node: Node) -> TaskRow:
    task_id = request.values["task_id"]
    row = await working(node).tasks.find(TaskId(task_id)) if task_id.isprintable() else None
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


def _limit(text: str | None) -> int:
    if text is None:
        return USUAL
    if not (text.isascii() and text.isdecimal() and len(text) <= 5) or not 1 <= int(text) <= MOST:
        raise UsageError(f"limit is 1 to {MOST:,}, not {quoted(text)}")
    return int(text)

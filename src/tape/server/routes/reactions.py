"""`/reactions`: register, list, show, pause, resume, remove and explain reactions."""

from typing import Any, Final

import msgspec

from tape.core.codec import MAX_INT
from tape.core.errors import NotFound
from tape.core.matched import ReactionRecord
from tape.core.page import encode_cursor
from tape.core.reaction import HandlerKind, check_reaction_id
from tape.matcher.explained import explanation_fields
from tape.operations.reactions import (
    ExplainReaction,
    GetReaction,
    ListReactions,
    PauseReaction,
    RegisterReaction,
    RemoveReaction,
    ResumeReaction,
)
from tape.server.http.request import Request
from tape.server.http.response import Response
from tape.server.http.route import Parameter, ResponseSpec, Route, respond_with
from tape.server.http.whole_number import whole_number
from tape.server.node import Node
from tape.server.routes.bounded import fit
from tape.server.routes.parameters import CURSOR, LIMIT, MAX_LIMIT, REACTION_ID, limit_of
from tape.server.routes.schemas import PositiveInt, SubjectPattern, parse_body
from tape.server.routes.work_schemas import (
    Deregistered,
    Explained,
    NewReaction,
    Pause,
    ReactionDefinition,
    ReactionDetail,
    Reactions,
)


async def list_reactions(request: Request, node: Node) -> Response:
    """A page of all reactions, or of those with exactly one pattern."""
    asked = ListReactions(
        subject_pattern=request.parameter("subject_pattern") or "",
        limit=limit_of(request, MAX_LIMIT),
        cursor=request.parameter("cursor") or "",
    )
    page, head = await node.operations.call(asked), await node.journal.head()
    rows = fit(ReactionDetail.of(record, head) for record in page.rows)
    rest = encode_cursor((rows[-1].reaction_id,), asked.question) if len(rows) < len(page.rows) else page.next_cursor
    return Response.json(Reactions(reactions=rows, next_cursor=rest))


async def register(request: Request, node: Node) -> Response:
    """Registers a reaction or changes it; matches are never repeated."""
    new: NewReaction = parse_body(await request.json(), NewReaction)
    return await _detail(node, await node.operations.call(_registration(new.reaction_id, new)), 201)


async def put_reaction(request: Request, node: Node) -> Response:
    new: ReactionDefinition = parse_body(await request.json(), ReactionDefinition)
    return await _detail(node, await node.operations.call(_registration(reaction_id_of(request), new)))


async def show_reaction(request: Request, node: Node) -> Response:
    return await _detail(node, await node.operations.call(GetReaction(reaction_id=reaction_id_of(request))))


async def remove_reaction(request: Request, node: Node) -> Response:
    """Pending tasks become dead; claimed tasks can still be settled."""
    reaction_id = reaction_id_of(request)
    if not await node.operations.call(RemoveReaction(reaction_id=reaction_id)):
        raise NotFound(f"there is no reaction {reaction_id!r}")
    return Response.json(Deregistered(reaction_id=reaction_id))


async def pause_reaction(request: Request, node: Node) -> Response:
    pause: Pause = parse_body(await request.json(), Pause) if request.is_unread else Pause()
    paused = PauseReaction(reaction_id=reaction_id_of(request), reason=pause.reason)
    return await _detail(node, await node.operations.call(paused))


async def resume_reaction(request: Request, node: Node) -> Response:
    return await _detail(node, await node.operations.call(ResumeReaction(reaction_id=reaction_id_of(request))))


async def explain_reaction(request: Request, node: Node) -> Response:
    global_seq = whole_number("global_seq", request.values["global_seq"], 1, MAX_INT)
    explanation = await node.operations.call(
        ExplainReaction(reaction_id=reaction_id_of(request), global_seq=global_seq)
    )
    return Response.json(msgspec.convert(explanation_fields(explanation), Explained))


async def _detail(node: Node, record: ReactionRecord, status: int = 200) -> Response:
    return Response.json(ReactionDetail.of(record, await node.journal.head()), status)


def _registration(reaction_id: str, definition: ReactionDefinition) -> RegisterReaction:
    fields: dict[str, Any] = {**msgspec.structs.asdict(definition), "reaction_id": reaction_id}
    return RegisterReaction(**{**fields, "handler_kind": HandlerKind(definition.handler_kind)})


def reaction_id_of(request: Request) -> str:
    return check_reaction_id(request.values["reaction_id"])


_GLOBAL_SEQ: Final = Parameter(
    name="global_seq", location="path", schema=PositiveInt, description="The position of the entry."
)
_PATTERN: Final = Parameter(
    name="subject_pattern", location="query", schema=SubjectPattern, description="Only reactions with this pattern."
)
_ONE: Final = (400, 404, 503)
_BODY: Final = (400, 413, 415, 503)
_DETAIL: Final = ResponseSpec(schema=ReactionDetail)

ROUTES: Final = (
    Route(
        method="GET", path="/reactions", name="listReactions", summary="List reactions",
        handler=respond_with(list_reactions), parameters=(_PATTERN, LIMIT, CURSOR),
        response=ResponseSpec(schema=Reactions), problems=(400, 503),
    ),
    Route(
        method="POST", path="/reactions", name="registerReaction", summary="Register a reaction, or change it",
        handler=respond_with(register), body=NewReaction, response=ResponseSpec(status=201, schema=ReactionDetail),
        problems=_BODY,
    ),
    Route(
        method="PUT", path="/reactions/{reaction_id}", name="putReaction", summary="Register the reaction with this id",
        handler=respond_with(put_reaction), parameters=(REACTION_ID,), body=ReactionDefinition, response=_DETAIL,
        problems=_BODY,
    ),
    Route(
        method="GET", path="/reactions/{reaction_id}", name="showReaction",
        summary="Show a reaction: its cursor, its lag and the errors of its predicate",
        handler=respond_with(show_reaction), parameters=(REACTION_ID,), response=_DETAIL, problems=_ONE,
    ),
    Route(
        method="DELETE", path="/reactions/{reaction_id}", name="deregisterReaction", summary="Remove a reaction",
        handler=respond_with(remove_reaction), parameters=(REACTION_ID,), response=ResponseSpec(schema=Deregistered),
        problems=_ONE,
    ),
    Route(
        method="POST", path="/reactions/{reaction_id}/pause", name="pauseReaction",
        summary="Stop matching and claiming until it is resumed", handler=respond_with(pause_reaction),
        parameters=(REACTION_ID,), body=Pause, is_body_required=False, response=_DETAIL, problems=(*_BODY, 404),
    ),
    Route(
        method="POST", path="/reactions/{reaction_id}/resume", name="resumeReaction",
        summary="Continue where it was paused", handler=respond_with(resume_reaction), parameters=(REACTION_ID,),
        response=_DETAIL, problems=_ONE,
    ),
    Route(
        method="GET", path="/reactions/{reaction_id}/explain/{global_seq}", name="explainReaction",
        summary="Why an entry became a task of a reaction, or why not",
        handler=respond_with(explain_reaction), parameters=(REACTION_ID, _GLOBAL_SEQ),
        response=ResponseSpec(schema=Explained), problems=(*_ONE, 410),
    ),
)  # fmt: skip

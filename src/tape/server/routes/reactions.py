"""`/reactions`: register, look at, pause, resume and remove them, and ask why an entry became a task or not."""

from typing import Any

import msgspec

from tape.core.errors import NotFound, UsageError, quoted
from tape.core.ids import ID_IN_WORDS, is_id
from tape.core.matched import ReactionRecord
from tape.core.ports import Store
from tape.core.reaction import HandlerKind, Reaction
from tape.core.subject import Pattern
from tape.matcher.explain import explain
from tape.matcher.explained import facts
from tape.server.http.request import Request
from tape.server.http.response import Response
from tape.server.node import Node
from tape.server.routes.shapes import shaped
from tape.server.routes.work_shapes import Deregistered, Explained, NewRule, Pause, ReactionDetail, Reactions, Rule


async def list_reactions(request: Request, node: Node) -> Response:
    """All that are registered, or those of exactly one pattern."""
    pattern = request.parameter("subject_pattern") or ""
    records = await working(node).reactions.listed(Pattern.parse(pattern).text if pattern else "")
    head = await node.journal.head()
    return Response.json(Reactions(reactions=[ReactionDetail.of(record, head) for record in records]))


async def register(request: Request, node: Node) -> Response:
    """Registers a reaction, or changes it; registering again never repeats anything."""
    asked: NewRule = shaped(await request.json(), NewRule)
    record = await working(node).reactions.register(_reaction(asked.reaction_id, asked))
    return await _told(node, record, 201)


async def put_reaction(request: Request, node: Node) -> Response:
    asked: Rule = shaped(await request.json(), Rule)
    record = await working(node).reactions.register(_reaction(reaction_id_of(request), asked))
    return await _told(node, record)


async def show_reaction(request: Request, node: Node) -> Response:
    reaction_id = reaction_id_of(request)
    record = await working(node).reactions.find(reaction_id)
    if record is None:
        raise NotFound(f"there is no reaction {reaction_id!r}")
    return await _told(node, record)


async def remove_reaction(request: Request, node: Node) -> Response:
    """Its pending tasks end as dead, and what is claimed may still be settled."""
    reaction_id = reaction_id_of(request)
    if not await working(node).reactions.remove(reaction_id):
        raise NotFound(f"there is no reaction {reaction_id!r}")
    return Response.json(Deregistered(reaction_id=reaction_id))


async def pause_reaction(request: Request, node: Node) -> Response:
    asked: Pause = shaped(await request.json(), Pause) if request.is_unread else Pause()
    return await _told(node, await working(node).reactions.pause(reaction_id_of(request), asked.reason))


async def resume_reaction(request: Request, node: Node) -> Response:
    return await _told(node, await working(node).reactions.resume(reaction_id_of(request)))


async def explain_reaction(request: Request, node: Node) -> Response:
    told = await explain(working(node), node.journal, reaction_id_of(request), _place(request.values["global_seq"]))
    return Response.json(msgspec.convert(facts(told), Explained))


def working(node: Node) -> Store:
    """The store, if it is one that has work."""
    if node.store is None:
        raise UsageError("this server's store has no reactions and no tasks")
    return node.store


async def _told(node: Node, record: ReactionRecord, status: int = 200) -> Response:
    return Response.json(ReactionDetail.of(record, await node.journal.head()), status)


def _reaction(reaction_id: str, rule: Rule) -> Reaction:
    asked: dict[str, Any] = {**msgspec.structs.asdict(rule), "reaction_id": reaction_id}
    return Reaction(**{**asked, "handler_kind": HandlerKind(rule.handler_kind)})


def reaction_id_of(request: Request) -> str:
    return check_id(request.values["reaction_id"])


def check_id(reaction_id: str) -> str:
    if not is_id(reaction_id):
        raise UsageError(f"reaction_id must be {ID_IN_WORDS}, not {quoted(reaction_id)}")
    return reaction_id


def _place(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 18) or int(text) < 1:
        raise UsageError(f"global_seq is a position from 1 on, not {quoted(text)}")
    return int(text)

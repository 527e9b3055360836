"""Procedures of reactions."""

from tape.core.caller import Caller
from tape.server.grpc.hall import Hall
from tape.wire import tape_pb2 as pb
from tape.wire.messages.tasks import asked, recorded
from tape.wire.pages import page


async def register_reaction(hall: Hall, request: pb.Reaction, caller: Caller) -> pb.Reaction:
    return recorded(await hall.store.reactions.register(asked(request)))


async def deregister_reaction(
    hall: Hall, request: pb.DeregisterReactionRequest, caller: Caller
) -> pb.DeregisterReactionResponse:
    return pb.DeregisterReactionResponse(deregistered=await hall.store.reactions.remove(request.reaction_id))


async def list_reactions(hall: Hall, request: pb.ListReactionsRequest, caller: Caller) -> pb.ListReactionsResponse:
    found = await hall.store.reactions.listed(request.subject_pattern)
    carried, rest = page(found, lambda each: (each.reaction.reaction_id,), recorded, request.cursor)
    return pb.ListReactionsResponse(reactions=carried, next_cursor=rest)

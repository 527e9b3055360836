"""Procedures of decisions."""

from tape.core.caller import Caller
from tape.server.grpc.hall import Hall
from tape.server.grpc.pages import page
from tape.wire import tape_pb2 as pb
from tape.wire.messages.effects import DECIDED, DECISION


async def record_decision(hall: Hall, request: pb.RecordDecisionRequest, caller: Caller) -> pb.DecisionRecord:
    fence = request.fence if request.HasField("fence") else None
    return DECISION.message(await hall.ledgers.decisions.record(DECIDED.value(request), fence, caller))


async def get_decision(hall: Hall, request: pb.GetDecisionRequest, caller: Caller) -> pb.GetDecisionResponse:
    found = await hall.ledgers.decisions.find(request.run_id, request.decision_index)
    return pb.GetDecisionResponse(found=found is not None, decision=None if found is None else DECISION.message(found))


async def list_decisions(hall: Hall, request: pb.ListDecisionsRequest, caller: Caller) -> pb.ListDecisionsResponse:
    found = await hall.ledgers.decisions.listed(request.run_id)
    carried, rest = page(found, lambda each: (each.decision_index,), DECISION.message, request.cursor)
    return pb.ListDecisionsResponse(decisions=carried, next_cursor=rest)

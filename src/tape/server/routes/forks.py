"""`POST /forks` and `POST /runs/{run_id}/cancel`: a child begins, and whoever goes on in it is stopped."""

from tape.core.event import check_run_id
from tape.core.fork_policy import EffectPolicy
from tape.runs.cancelling import cancel, is_begun
from tape.runs.forks import ForkSpec
from tape.server.http.request import Request
from tape.server.http.response import Response
from tape.server.node import Node
from tape.server.routes.runs import find
from tape.server.routes.shapes import ClosedRun, ForkedRun, NewFork, shaped


async def fork_run(request: Request, node: Node) -> Response:
    """Begins a child, which can be streamed at once; its producer, if one is named, goes on behind the answer."""
    asked: NewFork = shaped(await request.json(), NewFork)
    order = ForkSpec(
        at_seq=asked.at_seq,
        mutation=asked.mutation,
        n_turns=asked.n_turns,
        producer=asked.producer,
        effects=None if asked.effects is None else EffectPolicy(asked.effects),
        reason=asked.reason,
    )
    parent = await find(node, check_run_id(asked.parent_run_id))
    child = await node.forks.fork(parent, order)
    return Response.json(ForkedRun(child_run_id=child, parent_run_id=parent.run_id, at_seq=asked.at_seq))


async def cancel_run(request: Request, node: Node) -> Response:
    """Ends a run whoever goes on in it, and says so in the run; one that has ended stays as it is."""
    run_id = check_run_id(request.values["run_id"])
    reason = "it was asked for"
    if node.ledgers is not None and await is_begun(node.ledgers, run_id):
        last_seq = await cancel(node.journal, node.ledgers, run_id, reason)
    else:
        last_seq = await node.forks.cancel(run_id, reason)
    return Response.json(ClosedRun(run_id=run_id, status="complete", last_seq=last_seq))

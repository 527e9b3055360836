"""`/runs/{run_id}/gates`: signal a waiting run."""

from typing import Final

from tape.core import codec
from tape.core.caller import Caller
from tape.core.errors import UsageError
from tape.operations.gates import SendSignal
from tape.operations.rules import RequiredName as Name
from tape.runs.ledgers import Ledgers
from tape.server.http.request import Request
from tape.server.http.response import Response
from tape.server.http.route import Parameter, ResponseSpec, Route, respond_with
from tape.server.node import Node
from tape.server.routes.ledger_schemas import (
    NewSignal,
    SentSignal,
)
from tape.server.routes.parameters import IDEMPOTENCY_KEY, RUN_ID
from tape.server.routes.schemas import parse_body


def ledgers_of(node: Node) -> Ledgers:
    if node.ledgers is None:
        raise UsageError("this store has no ledgers; serve a sqlite:///, postgresql:// or memory:// store")
    return node.ledgers


async def signal_run(request: Request, node: Node) -> Response:
    """ResponseSpec at a gate; a run that waits there may go on."""
    signal: NewSignal = parse_body(await request.json(), NewSignal) if request.is_unread else NewSignal()
    sent = await ledgers_of(node).call(
        SendSignal(
            run_id=request.values["run_id"], gate=request.values["gate"],
            resolution_json=codec.encode(signal.resolution), key=request.header("idempotency-key"),
        ),
        Caller(trace=request.trace),
    )  # fmt: skip
    status = None if sent.run_status is None else sent.run_status.value
    return Response.json(SentSignal(accepted=sent.is_accepted, run_id=sent.run_id, run_status=status))


_GATE: Final = Parameter(name="gate", location="path", schema=Name, description="The gate that the run waits at.")

ROUTES: Final = (
    Route(
        method="POST", path="/runs/{run_id}/gates/{gate}", name="signalRun",
        summary="Send a signal to a gate; a run that waits there resumes", handler=respond_with(signal_run),
        parameters=(RUN_ID, _GATE, IDEMPOTENCY_KEY), body=NewSignal, is_body_required=False,
        response=ResponseSpec(schema=SentSignal), problems=(400, 404, 409, 413, 415, 429, 503),
    ),
)  # fmt: skip

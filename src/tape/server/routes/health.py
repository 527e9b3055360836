"""`/health`, `/ready` and `/capabilities`."""

from typing import Final

from msgspec import UNSET

from tape.core import codec, flow, sequence
from tape.core.server_unavailable import ServerUnavailable
from tape.operations.catalogue import ALL
from tape.server.http.body import MAX_BODY
from tape.server.http.request import Request
from tape.server.http.response import Response
from tape.server.http.route import ResponseSpec, Route, respond_with
from tape.server.journal_head import head_of, head_or_none
from tape.server.node import Node
from tape.server.routes.schemas import Capabilities, Health, Readiness
from tape.server.version import server_version
from tape.wire.operation_json import request_type

FEATURES: Final = (
    "session_events", "slow_client_warning", "typed_event_schema", "replay_complete", "state_resync_required",
    "subject_streams", "predicates", "checkpoints", "idempotency_keys", "expected_seq", "goaway", "run_end", "forks",
)  # fmt: skip
LIMITS: Final = {
    "max_body_bytes": MAX_BODY,
    "max_payload_bytes": codec.MAX_BYTES,
    "max_events": sequence.MAX_EVENTS,
    "min_max_queued": flow.MIN_MAX_QUEUED,
    "max_max_queued": flow.MAX_MAX_QUEUED,
    "default_max_queued": flow.DEFAULT_MAX_QUEUED,
    "max_queued_bytes": flow.DEFAULT_MAX_BYTES,
}


async def health(request: Request, node: Node) -> Response:
    return Response.json(Health())


async def ready(request: Request, node: Node) -> Response:
    if node.is_draining:
        raise ServerUnavailable("the server is draining")
    return Response.json(Readiness(head=await head_of(node.journal)))


async def capabilities(request: Request, node: Node) -> Response:
    head = await head_or_none(node.journal)
    return Response.json(
        Capabilities(
            features=dict.fromkeys(FEATURES, True), limits=LIMITS, epoch=node.journal.epoch, version=server_version(),
            head=UNSET if head is None else head,
            operations={each.name: list(request_type(each).__struct_fields__) for each in ALL},
        )
    )  # fmt: skip


ROUTES: Final = (
    Route(
        method="GET", path="/health", name="health", summary="Whether the process answers",
        handler=respond_with(health), response=ResponseSpec(schema=Health),
    ),
    Route(
        method="GET", path="/ready", name="ready", summary="Whether the server is ready, or why not",
        handler=respond_with(ready), response=ResponseSpec(schema=Readiness), problems=(503,),
    ),
    Route(
        method="GET", path="/capabilities", name="capabilities", summary="The server's features and limits",
        handler=respond_with(capabilities), response=ResponseSpec(schema=Capabilities),
    ),
)  # fmt: skip

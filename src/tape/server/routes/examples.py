"""Examples in the OpenAPI document: of parameters in paths by name, and of bodies by the type of the body."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from tape.operations.fields import EXAMPLES
from tape.server.http.route import Route
from tape.server.routes.lake_schemas import LakeQuery
from tape.server.routes.ledger_schemas import NewSignal, NewValue
from tape.server.routes.schemas import Cancellation, NewEvents, NewFork, NewRun
from tape.server.routes.searches import NewSearch
from tape.server.routes.work_schemas import NewReaction, Pause, ReactionDefinition, Replay

IN_PATHS: Final[Mapping[str, Any]] = MappingProxyType(
    {
        **EXAMPLES, "global_seq": 1, "name": "runs",
        "other": "order-2", "reaction_id": "on-order", "seq": 1, "task_id": "task-1",
    }
)  # fmt: skip
_REACTION: Final = {"subject_pattern": "/tape/event/message/*"}
BODIES: Final[Mapping[Any, Any]] = MappingProxyType(
    {
        NewRun: {"run_id": "order-1", "label": "the first order"},
        NewEvents: [{"type": "paid", "payload": {"amount": 7}}],
        NewFork: {"parent_run_id": "order-1", "at_seq": 1},
        Cancellation: {"reason": "its producer is gone"},
        NewValue: {"value": 1.08},
        NewSignal: {"resolution": {"approved": True}},
        ReactionDefinition: _REACTION,
        NewReaction: {"reaction_id": "on-order", **_REACTION},
        Pause: {"reason": "the handler is being repaired"},
        Replay: {"reaction_id": "on-order"},
        NewSearch: {"after": 0},
        LakeQuery: {"sql": "VALUES (1)"},
    }
)


def body_example(route: Route) -> dict[str, Any]:
    """The example of a route's body: its own, that of its type, or an empty one if nothing is required."""
    example = BODIES.get(route.body) if route.example is None else route.example
    if example is None and route.is_body_required:
        return {}
    return {"example": example or {}}

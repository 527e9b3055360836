"""Examples in the OpenAPI document: of parameters in paths by name, and of bodies by the type of the body."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from tape.operations.fields import EXAMPLES
from tape.server.http.route import Route
from tape.server.routes.lake_schemas import LakeQuery
from tape.server.routes.schemas import NewEvents
from tape.server.routes.searches import NewSearch
from tape.server.routes.values import NewValue

IN_PATHS: Final[Mapping[str, Any]] = MappingProxyType(
    {
        **EXAMPLES, "global_seq": 1, "name": "runs",
        "other": "order-2", "reaction_id": "on-order", "seq": 1, "task_id": "task-1",
    }
)  # fmt: skip
BODIES: Final[Mapping[Any, Any]] = MappingProxyType(
    {
        NewEvents: [{"type": "paid", "payload": {"amount": 7}}],
        NewValue: {"value": 1.08},
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

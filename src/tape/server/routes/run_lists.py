"""`GET /runs`: pages of runs by status, app, label, prefix, parent and times."""

from enum import StrEnum
from typing import Annotated, Final, Literal, TypeVar

from msgspec import Meta

from tape.core.errors import UsageError, quoted
from tape.core.run_query import LAST_MS, RunOrder, StatusFilter
from tape.operations.journal_runs import ListRuns
from tape.server.http.request import Request
from tape.server.http.response import Response
from tape.server.http.route import Parameter
from tape.server.http.whole_number import whole_number
from tape.server.node import Node
from tape.server.routes.parameters import CURSOR, LIMIT, MAX_LIMIT, limit_of
from tape.server.routes.schemas import Id, Run, Runs, Text

Choice = TypeVar("Choice", bound=StrEnum)

TIMES: Final = {
    "opened_after": "Only runs opened at this time or later, in milliseconds since 1970.",
    "opened_before": "Only runs opened before this time.",
    "closed_after": "Only runs closed at this time or later.",
    "closed_before": "Only runs closed before this time.",
}
_Time = Annotated[int, Meta(ge=0, le=LAST_MS)]
_Status = Literal["open", "running", "stale", "complete"]
_Order = Literal["live", "newest", "oldest", "id"]


async def list_runs(request: Request, node: Node) -> Response:
    """A page of the runs that match, in the store or in cold files; each run once."""
    page = await node.operations.call(_list(request))
    return Response.json(Runs(runs=[Run.of(record) for record in page.rows], next_cursor=page.next_cursor))


def _list(request: Request) -> ListRuns:
    times = {name: text for name in TIMES if (text := request.parameter(name)) is not None}
    bounds = {name: whole_number(name, text, 0, LAST_MS) for name, text in times.items()}
    return ListRuns(
        status=_choice(request, "status", StatusFilter),
        app=request.parameter("app"),
        label=request.parameter("label"),
        prefix=request.parameter("prefix"),
        parent=request.parameter("parent"),
        order=_choice(request, "order", RunOrder),
        limit=limit_of(request, MAX_LIMIT),
        cursor=request.parameter("cursor") or "",
        **bounds,
    )


def _choice(request: Request, name: str, choices: type[Choice]) -> Choice | None:
    text = request.parameter(name)
    if text is None:
        return None
    if text not in [choice.value for choice in choices]:
        raise UsageError(f"{name} is {', '.join(choices)}, not {quoted(text)}")
    return choices(text)


FILTERS: Final = (
    LIMIT,
    CURSOR,
    Parameter(name="status", location="query", schema=_Status, description="Only runs with one status."),
    Parameter(name="app", location="query", schema=Text, description="Only runs of one app."),
    Parameter(name="label", location="query", schema=Text, description="Only runs with one label."),
    Parameter(name="prefix", location="query", schema=Id, description="Only runs whose ids begin with it."),
    Parameter(name="parent", location="query", schema=Id, description="Only forks of one run."),
    *(Parameter(name=name, location="query", schema=_Time, description=text) for name, text in TIMES.items()),
    Parameter(
        name="order", location="query", schema=_Order,
        description="live: open runs first, the default without filters but the status; newest or oldest: by the time "
        "of opening, or of closing if that is bounded; id: by run id, the default with a prefix.",
    ),
)  # fmt: skip

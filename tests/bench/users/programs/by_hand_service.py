"""The table of events as a service: Starlette on uvicorn, with SSE by sse-starlette.

`uvicorn tests.bench.users.programs.by_hand_service:app --no-access-log`, and the database in EVENTS_URL. uvicorn takes
uvloop and httptools because they are installed, as `uvicorn[standard]` installs them.
"""

import json
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from sse_starlette.sse import EventSourceResponse
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.bench.users.by_hand import NewEvent, Row, open_events

PAGE = 500


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[None]:
    async with open_events(os.environ["EVENTS_URL"]) as events:
        app.state.events = events
        yield


async def append(request: Request) -> Response:
    given = await request.json()
    events = [NewEvent(each["type"], json.dumps(each["payload"])) for each in _listed(given)]
    seq, position = await request.app.state.events.append(request.path_params["run_id"], events)
    return JSONResponse({"entries": [{"seq": seq + n, "position": position + n} for n in range(len(events))]})


def _listed(given: Any) -> Sequence[dict[str, Any]]:
    return given if isinstance(given, list) else [given]


async def page(request: Request) -> Response:
    after, limit = int(request.query_params.get("after", 0)), int(request.query_params.get("limit", 100))
    rows = await request.app.state.events.read(request.path_params["run_id"], after, limit)
    return JSONResponse({"entries": [_shown(row) for row in rows], "next": rows[-1].seq if rows else after})


def _shown(row: Row) -> dict[str, object]:
    return {**row._asdict(), "payload": json.loads(row.payload)}


async def stream(request: Request) -> EventSourceResponse:
    return EventSourceResponse(_frames(request, request.query_params["run_id"]), sep="\n")


async def _frames(request: Request, run_id: str) -> AsyncIterator[dict[str, str]]:
    """History, then whatever comes."""
    after, events = int(request.headers.get("last-event-id", 0)), request.app.state.events
    while True:
        grown = events.grown
        rows = await events.read(run_id, after, PAGE)
        for row in rows:
            yield {"id": str(row.seq), "event": row.type, "data": json.dumps(_shown(row))}
            after = row.seq
        if not rows:
            await grown.wait()


app = Starlette(
    lifespan=lifespan,
    routes=[
        Route("/runs/{run_id}/events", append, methods=["POST"]),
        Route("/runs/{run_id}/events", page, methods=["GET"]),
        Route("/events", stream),
    ],
)

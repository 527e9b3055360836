"""Every route there is: the one place that routing and both documents are made from."""

from typing import Annotated, Final, Literal

from msgspec import Meta

from tape.core.flow import MAX_MAX_QUEUED, MIN_MAX_QUEUED
from tape.server.http.route import Answers, Handler, Parameter, Route, answering
from tape.server.routes import (
    console,
    documents,
    events,
    forks,
    health,
    lake,
    ledger_routes,
    metrics,
    outbox_routes,
    runs,
    searches,
    streams,
    work_routes,
)
from tape.server.routes.shapes import (
    Appended,
    BrokerCounters,
    Capabilities,
    ClosedRun,
    Count,
    ForkedRun,
    Health,
    Id,
    NewEvent,
    NewFork,
    NewRun,
    OpenedRun,
    Readiness,
    RunDetail,
    Runs,
)

_RUN_ID: Final = Parameter(name="run_id", place="path", shape=Id, about="Which run.")
_LIMIT: Final = Parameter(
    name="limit", place="query", shape=Annotated[int, Meta(ge=1, le=runs.MOST)], about="How many runs at most."
)
_APPEND_HEADERS: Final = (
    Parameter(
        name="Idempotency-Key",
        place="header",
        shape=Annotated[str, Meta(min_length=1, max_length=256)],
        about="The same key and body again give the first positions.",
    ),
    Parameter(name="Expected-Seq", place="header", shape=Count, about="The run's last seq before, or nothing."),
    Parameter(name="traceparent", place="header", shape=str, about="The producer's span, by the W3C."),
    Parameter(name="X-Client-Id", place="header", shape=str, about="Who says it; streams tell it to readers."),
)
_STREAM: Final = (
    Parameter(name="Last-Event-ID", place="header", shape=str, about="The last id handled; wins over from_*."),
    Parameter(name="X-Tape-Epoch", place="header", shape=str, about="Which journal the cursor is from."),
    Parameter(name="epoch", place="query", shape=Count, about="The same for who cannot send headers."),
    Parameter(
        name="maxQueued",
        place="query",
        shape=Annotated[int, Meta(ge=MIN_MAX_QUEUED, le=MAX_MAX_QUEUED)],
        about="How far behind a live reader may be.",
    ),
    Parameter(
        name="slow", place="query", shape=Literal["evict", "lag"], about="What happens to one that is further behind."
    ),
)
_OF_RUN: Final = (
    Parameter(name="from_seq", place="query", shape=Count, about="Of a run: the first seq wanted."),
    Parameter(name="subject", place="query", shape=str, about="A pattern of subjects."),
    Parameter(name="where", place="query", shape=str, about="A CEL expression over entries."),
)
_WHICH: Final = (
    Parameter(name="run_id", place="query", shape=Id, about="One run, by its seqs."),
    *_OF_RUN,
    Parameter(name="from_global_seq", place="query", shape=Count, about="Across runs: the last position handled."),
)
_EVENT_STREAM: Final = Answers(content_type="text/event-stream")


def _stream(path: str, name: str, summary: str, handler: Handler, parameters: tuple[Parameter, ...]) -> Route:
    return Route(
        method="GET", path=path, name=name, summary=summary, handler=handler, answers=_EVENT_STREAM,
        parameters=(*parameters, *_STREAM), problems=(400, 404, 429, 503), is_stream=True,
    )  # fmt: skip


_WORK: Final = (
    Route(
        method="GET", path="/health", name="health", summary="Whether the process is there",
        handler=answering(health.health), answers=Answers(shape=Health),
    ),
    Route(
        method="GET", path="/ready", name="ready", summary="Whether it can work, or why not",
        handler=answering(health.ready), answers=Answers(shape=Readiness), problems=(503,),
    ),
    Route(
        method="GET", path="/capabilities", name="capabilities", summary="What it can do",
        handler=answering(health.capabilities), answers=Answers(shape=Capabilities),
    ),
    Route(
        method="GET", path="/metrics", name="metrics", summary="What it has counted",
        handler=answering(metrics.metrics),
        answers=Answers(shape=str, content_type="text/plain", other=("application/json", BrokerCounters)),
    ),
    Route(
        method="POST", path="/runs", name="openRun", summary="Open a run", handler=answering(runs.open_run),
        body=NewRun, is_body_required=False, answers=Answers(status=201, shape=OpenedRun),
        problems=(400, 409, 413, 415, 503),
    ),
    Route(
        method="GET", path="/runs", name="listRuns", summary="List runs, open ones first",
        handler=answering(runs.list_runs), parameters=(_LIMIT,), answers=Answers(shape=Runs), problems=(400, 503),
    ),
    Route(
        method="GET", path="/runs/{run_id}", name="showRun", summary="Look at a run",
        handler=answering(runs.show_run), parameters=(_RUN_ID,), answers=Answers(shape=RunDetail),
        problems=(400, 404, 503),
    ),
    Route(
        method="POST", path="/runs/{run_id}/close", name="closeRun", summary="Close a run; its streams drain and end",
        handler=answering(runs.close_run), parameters=(_RUN_ID,), answers=Answers(shape=ClosedRun),
        problems=(400, 404, 503),
    ),
    Route(
        method="POST", path="/runs/{run_id}/cancel", name="cancelRun",
        summary="Stop whoever goes on in a run, and close it with an entry that says so",
        handler=answering(forks.cancel_run), parameters=(_RUN_ID,), answers=Answers(shape=ClosedRun),
        problems=(400, 404, 503),
    ),
    Route(
        method="POST", path="/forks", name="forkRun", summary="Begin a run that leaves another one at a seq",
        handler=answering(forks.fork_run), body=NewFork, answers=Answers(shape=ForkedRun),
        problems=(400, 404, 410, 413, 415, 429, 503),
    ),
    Route(
        method="POST", path="/runs/{run_id}/events", name="appendEvents", summary="Append one event or many",
        handler=answering(events.append_events), parameters=(_RUN_ID, *_APPEND_HEADERS), body=NewEvent | list[NewEvent],
        answers=Answers(status=201, shape=Appended), problems=(400, 404, 409, 413, 415, 429, 503),
    ),
    _stream("/events", "events", "Stream a run, or subjects across runs", streams.events, _WHICH),
    _stream(
        "/session/{run_id}/events", "sessionEvents", "Stream a run, live only without a cursor",
        streams.session_events, (_RUN_ID, *_OF_RUN),
    ),
    *work_routes.ROUTES,
    *searches.ROUTES,
    *ledger_routes.ROUTES,
    *outbox_routes.ROUTES,
    *lake.ROUTES,
)  # fmt: skip

ROUTES: Final[tuple[Route, ...]] = (*_WORK, *documents.routes(_WORK), *console.ROUTES)

"""The routes of values, signals and differences."""

from typing import Annotated, Final

from msgspec import Meta

from tape.server.http.route import Answers, Parameter, Route, answering
from tape.server.routes import ledgers, values
from tape.server.routes.ledger_shapes import (
    KnownValue,
    KnownValues,
    Name,
    NewSignal,
    NewValue,
    RunDiff,
    SentSignal,
    ValueVersions,
)
from tape.server.routes.shapes import Id

_NAMESPACE: Final = Parameter(name="namespace", place="path", shape=Name, about="Whose value.")
_KEY: Final = Parameter(name="key", place="path", shape=Name, about="Which value.")
_VALUE: Final = (_NAMESPACE, _KEY)
_LIMIT: Final = Parameter(
    name="limit", place="query", shape=Annotated[int, Meta(ge=1, le=values.MOST)], about="How many versions at most."
)
_ONCE: Final = Parameter(
    name="Idempotency-Key",
    place="header",
    shape=Annotated[str, Meta(min_length=1, max_length=256)],
    about="The same key and call again give the first answer.",
)
_WRITE: Final = (
    *_VALUE,
    Parameter(name="If-Match", place="header", shape=str, about="Only over this version, as ETag had it."),
    Parameter(name="If-None-Match", place="header", shape=str, about="*: only if there is no value."),
    _ONCE,
    Parameter(name="traceparent", place="header", shape=str, about="The writer's span, by the W3C."),
    Parameter(name="X-Client-Id", place="header", shape=str, about="Who writes it."),
)
_RUN: Final = Parameter(name="run_id", place="path", shape=Id, about="Which run.")
_OTHER: Final = Parameter(name="other", place="path", shape=Id, about="The run beside it.")
_GATE: Final = Parameter(name="gate", place="path", shape=Name, about="Where it waits, or will.")

ROUTES: Final = (
    Route(
        method="GET", path="/values/{namespace}", name="listValues", summary="List the values of a namespace",
        handler=answering(values.list_values), parameters=(_NAMESPACE,), answers=Answers(shape=KnownValues),
        problems=(400, 503),
    ),
    Route(
        method="GET", path="/values/{namespace}/{key}", name="getValue", summary="What is known; ETag is its version",
        handler=answering(values.get_value), parameters=_VALUE, answers=Answers(shape=KnownValue),
        problems=(400, 404, 503),
    ),
    Route(
        method="PUT", path="/values/{namespace}/{key}", name="putValue", summary="Write the next version",
        handler=answering(values.put_value), parameters=_WRITE, body=NewValue, answers=Answers(shape=KnownValue),
        problems=(400, 409, 413, 415, 429, 503),
    ),
    Route(
        method="DELETE", path="/values/{namespace}/{key}", name="deleteValue", summary="Write a tombstone",
        handler=answering(values.delete_value), parameters=_WRITE, answers=Answers(shape=KnownValue),
        problems=(400, 404, 409, 429, 503),
    ),
    Route(
        method="GET", path="/values/{namespace}/{key}/history", name="valueHistory",
        summary="The newest versions, the oldest of them first", handler=answering(values.value_history),
        parameters=(*_VALUE, _LIMIT), answers=Answers(shape=ValueVersions), problems=(400, 404, 410, 503),
    ),
    Route(
        method="POST", path="/runs/{run_id}/gates/{gate}", name="signalRun",
        summary="Answer at a gate; a run that waits there may go on", handler=answering(ledgers.signal_run),
        parameters=(_RUN, _GATE, _ONCE), body=NewSignal, is_body_required=False, answers=Answers(shape=SentSignal),
        problems=(400, 404, 409, 413, 415, 429, 503),
    ),
    Route(
        method="GET", path="/runs/{run_id}/diff/{other}", name="diffRuns",
        summary="Where two runs part, and what each of them says, decides and does from there on",
        handler=answering(ledgers.diff_runs), parameters=(_RUN, _OTHER), answers=Answers(shape=RunDiff),
        problems=(400, 404, 410, 503),
    ),
)  # fmt: skip

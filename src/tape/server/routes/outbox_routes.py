"""The routes of an outbox."""

from typing import Final
from uuid import UUID

from tape.server.http.route import Answers, Parameter, Route, answering
from tape.server.routes import outbox
from tape.server.routes.outbox_shapes import (
    Limit,
    OutboxDetail,
    OutboxReplay,
    OutboxReplayed,
    OutboxRows,
    OutboxStanding,
    Status,
    Text,
)

_EVENT: Final = Parameter(name="event_id", place="path", shape=UUID, about="Which event.")
_STATUS: Final = Parameter(name="status", place="query", shape=Status, about="Only rows of one status.")
_FILTERS: Final = (
    Parameter(name="event_type", place="query", shape=Text, about="Only events of one type."),
    Parameter(name="limit", place="query", shape=Limit, about="How many rows at most."),
)
_PROBLEMS: Final = (400, 404, 503)

ROUTES: Final = (
    Route(
        method="GET", path="/outbox", name="listOutbox", summary="List rows of the outbox, the newest first",
        handler=answering(outbox.list_rows), parameters=(_STATUS, *_FILTERS), answers=Answers(shape=OutboxRows),
        problems=_PROBLEMS,
    ),
    Route(
        method="GET", path="/outbox/failed", name="listFailedOutbox", summary="List the dead letters",
        handler=answering(outbox.list_failed), parameters=_FILTERS, answers=Answers(shape=OutboxRows),
        problems=_PROBLEMS,
    ),
    Route(
        method="GET", path="/outbox/stats", name="outboxStats", summary="How much waits, for how long, and what to do",
        handler=answering(outbox.show_stats), answers=Answers(shape=OutboxStanding), problems=(404, 503),
    ),
    Route(
        method="POST", path="/outbox/replay", name="replayOutbox", summary="Handle rows that have ended once more",
        handler=answering(outbox.replay_rows), body=OutboxReplay, answers=Answers(shape=OutboxReplayed),
        problems=(*_PROBLEMS, 413, 415),
    ),
    Route(
        method="GET", path="/outbox/{event_id}", name="showOutbox", summary="Look at a row and each of its deliveries",
        handler=answering(outbox.show_row), parameters=(_EVENT,), answers=Answers(shape=OutboxDetail),
        problems=_PROBLEMS,
    ),
)  # fmt: skip

"""Parses a stream request: its cursor, its filters, and what happens when the client is slow."""

import re
from dataclasses import dataclass
from typing import Final

from tape.core.errors import InvalidCursor, InvalidMaxQueued, UsageError, quoted
from tape.core.event import check_run_id
from tape.core.flow import DEFAULT_MAX_QUEUED, Flow, check_max_queued
from tape.core.ids import RunId
from tape.server.http.request import Request

MAX_CURSOR: Final = (1 << 53) - 1  # the largest integer that a browser can send back exactly

_is_digits = re.compile("[0-9]{1,16}").fullmatch


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRequest:
    """A stream request; `after` is None without a cursor, `flow` is None for a reader that may lag."""

    run_id: RunId | None
    subject: str | None
    where: str | None
    after: int | None
    epoch: int | None
    flow: Flow | None

    @classmethod
    def of(cls, request: Request) -> "StreamRequest":
        run_id = request.values.get("run_id") or request.parameter("run_id")
        return cls(
            run_id=None if run_id is None else check_run_id(run_id),
            subject=request.parameter("subject"),
            where=request.parameter("where"),
            after=_after(request, is_of_run=run_id is not None),
            epoch=_epoch(request),
            flow=_flow(request.parameter("slow"), request.parameter("maxQueued")),
        )


def _after(request: Request, *, is_of_run: bool) -> int | None:
    """The client's cursor; the header wins, because a reconnecting browser sends the old URL."""
    ours, other = ("from_seq", "from_global_seq") if is_of_run else ("from_global_seq", "from_seq")
    if request.parameter(other) is not None:
        raise UsageError(f"{other} is not for this stream; it begins at {ours}")
    last_event_id, first = request.header("last-event-id"), request.parameter(ours)
    if last_event_id is not None:
        return _cursor("Last-Event-ID", last_event_id)
    if first is None:
        return None
    cursor = _cursor(ours, first)
    return max(cursor, 1) - 1 if is_of_run else cursor


def _cursor(name: str, text: str) -> int:
    if not _is_digits(text) or int(text) > MAX_CURSOR:
        raise InvalidCursor(f"{name} is a whole number from 0 to {MAX_CURSOR}, not {quoted(text)}")
    return int(text)


def _epoch(request: Request) -> int | None:
    text = request.header("x-tape-epoch") or request.parameter("epoch")
    if text is None:
        return None
    if not _is_digits(text):
        raise InvalidCursor(f"an epoch is the number this server gave, not {quoted(text)}")
    return int(text)


def _flow(slow: str | None, max_queued: str | None) -> Flow | None:
    if slow not in (None, "evict", "lag"):
        raise UsageError(f"slow is evict or lag, not {quoted(slow)}")
    if max_queued is None:
        cap = DEFAULT_MAX_QUEUED
    elif _is_digits(max_queued):
        cap = check_max_queued(int(max_queued))
    else:
        raise InvalidMaxQueued(f"maxQueued is a whole number, not {quoted(max_queued)}")
    return None if slow == "lag" else Flow(max_queued=cap)

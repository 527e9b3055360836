"""Parses a stream request: its cursor, its filters, and what happens when the client is slow."""

from dataclasses import dataclass
from typing import Final

from tape.core.errors import InvalidCursor, InvalidMaxQueued, UsageError, quoted
from tape.core.event import check_run_id
from tape.core.flow import DEFAULT_MAX_QUEUED, MAX_MAX_QUEUED, MIN_MAX_QUEUED, Flow
from tape.core.ids import RunId
from tape.server.http.request import Request
from tape.server.http.whole_number import whole_number

MAX_CURSOR: Final = (1 << 53) - 1  # the largest integer that a browser can send back exactly


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
            epoch=epoch_of(request),
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
    return whole_number(name, text, 0, MAX_CURSOR, InvalidCursor)


def epoch_of(request: Request) -> int | None:
    """The epoch of a request's cursor, if it names one."""
    text = request.header("x-tape-epoch") or request.parameter("epoch")
    return None if text is None else _cursor("an epoch", text)


def _flow(slow: str | None, max_queued: str | None) -> Flow | None:
    if slow not in (None, "evict", "lag"):
        raise UsageError(f"slow is evict or lag, not {quoted(slow)}")
    cap = DEFAULT_MAX_QUEUED
    if max_queued is not None:
        cap = whole_number("maxQueued", max_queued, MIN_MAX_QUEUED, MAX_MAX_QUEUED, InvalidMaxQueued)
    return None if slow == "lag" else Flow(max_queued=cap)

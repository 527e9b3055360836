"""`GET /runs/{run_id}/events`: a run's entries in pages, as JSON; and the body of one entry, as it was appended."""

from dataclasses import replace
from datetime import timedelta
from typing import Annotated, Any, Final

import anyio
import msgspec
from msgspec import Meta, Raw

from tape.core.errors import InvalidCursor, NotFound, UsageError, quoted
from tape.core.event_page import EventPage
from tape.core.ids import RunId
from tape.operations.fields import LONGEST_WAIT, NO_WAIT
from tape.operations.journal_runs import EVENTS, ListEvents
from tape.server.http.entity_tag import is_known
from tape.server.http.request import Request
from tape.server.http.response import Response
from tape.server.http.route import Parameter, ResponseSpec, Route, respond_with
from tape.server.http.whole_number import whole_number
from tape.server.node import Node
from tape.server.routes.parameters import KNOWN_TAG, LIMIT, RUN_ID, limit_of
from tape.server.routes.schemas import Events
from tape.server.sse.options import MAX_CURSOR, epoch_of
from tape.wire.sse import entry_json

Seconds = Annotated[float, Meta(ge=0, le=LONGEST_WAIT.total_seconds())]
Place = Annotated[int, Meta(ge=0, le=MAX_CURSOR)]


async def list_events(request: Request, node: Node) -> Response:
    """Entries after a seq; its tag changes whenever the run grows, ends or is opened again."""
    after = request.parameter("after")
    page = await _page(
        node,
        ListEvents(
            run_id=request.values["run_id"],
            after=0 if after is None else whole_number("after", after, 0, MAX_CURSOR, InvalidCursor),
            limit=limit_of(request, EVENTS),
            wait=_wait(request.parameter("wait")),
            epoch=epoch_of(request),
        ),
    )
    headers = _headers(page, f'"{page.epoch}.{page.head}.{int(page.closed)}"')
    if is_known(request, headers["etag"]):
        return Response(status=304, headers=headers)
    entries = [Raw(entry_json(entry)) for entry in page.entries]
    answer = {"entries": entries, "next": page.next, "head": page.head, "closed": page.closed}
    return Response(body=msgspec.json.encode(answer), headers=headers)


async def event_body(request: Request, node: Node) -> Response:
    """The body of an entry with its content type. A browser saves it: it may be a page with scripts of anybody."""
    run_id, seq = request.values["run_id"], whole_number("seq", request.values["seq"], 0, MAX_CURSOR)
    try:
        page = await node.operations.call(ListEvents(run_id=run_id, after=max(seq, 1) - 1, limit=1))
    except InvalidCursor as error:
        raise NotFound(str(error)) from error
    if not page.entries or seq == 0:
        raise NotFound(f"run {run_id!r} has entries 1 to {page.head}, and no {seq}")
    (entry,) = page.entries
    headers = _headers(page, f'"{page.epoch}.{entry.global_seq}"')
    if is_known(request, headers["etag"]):
        return Response(status=304, headers=headers)
    body = (entry.payload_json or "").encode() if entry.payload_bytes is None else entry.payload_bytes
    safely = {"content-disposition": "attachment", "content-security-policy": "sandbox"}
    return Response(content_type=entry.content_type, body=body, headers={**headers, **safely})


async def _page(node: Node, request: ListEvents) -> EventPage:
    """A reader that waits counts as a stream; a server that shuts down answers at once."""
    if not request.wait:
        return await node.operations.call(request)
    with node.subscribers.join(RunId(request.run_id)) as subscriber, anyio.CancelScope() as waiting:
        subscriber.goaway = lambda _: waiting.cancel()
        return await node.operations.call(request)
    return await node.operations.call(replace(request, wait=NO_WAIT))


def _headers(page: EventPage, tag: str) -> dict[str, str]:
    return {"etag": tag, "x-tape-epoch": str(page.epoch)}


def _wait(text: str | None) -> timedelta:
    if text is None:
        return NO_WAIT
    try:
        return timedelta(seconds=msgspec.convert(text, Seconds, strict=False))
    except msgspec.ValidationError:
        most = LONGEST_WAIT.total_seconds()
        raise UsageError(f"wait is a number of seconds from 0 to {most:g}, not {quoted(text)}") from None


def _query(name: str, schema: Any, description: str) -> Parameter:
    return Parameter(name=name, location="query", schema=schema, description=description)


_EPOCH: Final = (
    Parameter(name="X-Tape-Epoch", location="header", schema=Place, description="The journal that `after` is from."),
    _query("epoch", Place, "The same for clients that send no headers."),
)
_PAGE: Final = (
    _query("after", Place, "The last seq handled; 0, the default, is before the first."),
    LIMIT,
    _query("wait", Seconds, "Seconds to wait for an entry or for the run's end."),
    *_EPOCH,
    KNOWN_TAG,
)
_SEQ: Final = Parameter(name="seq", location="path", schema=Place, description="The entry's seq in its run.")

ROUTES: Final = (
    Route(
        method="GET", path="/runs/{run_id}/events", name="listEvents", summary="Entries of a run, a page at a time",
        handler=respond_with(list_events), parameters=(RUN_ID, *_PAGE), response=ResponseSpec(schema=Events),
        problems=(400, 404, 410, 429, 503),
    ),
    Route(
        method="GET", path="/runs/{run_id}/events/{seq}", name="eventBody",
        summary="The body of an entry, with its content type", handler=respond_with(event_body),
        parameters=(RUN_ID, _SEQ, KNOWN_TAG),
        response=ResponseSpec(schema=Any, alternative=("application/octet-stream", bytes)),
        problems=(400, 404, 410, 503),
    ),
)  # fmt: skip

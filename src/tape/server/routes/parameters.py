"""Parameters that several routes share, and how they are parsed."""

from typing import Annotated, Final

from msgspec import Meta

from tape.core.errors import UsageError, quoted
from tape.core.text import MAX_NAME
from tape.operations.rules import Cursor
from tape.server.http.request import Request
from tape.server.http.route import Parameter
from tape.server.http.whole_number import whole_number
from tape.server.routes.schemas import Id

MAX_LIMIT: Final = 1000
Key = Annotated[str, Meta(pattern=f"^[!-~]([ -~]{{0,{MAX_NAME - 2}}}[!-~])?$", description="printable ASCII")]
Limit = Annotated[int, Meta(ge=1, le=MAX_LIMIT)]

RUN_ID: Final = Parameter(name="run_id", location="path", schema=Id, description="The run.")
REACTION_ID: Final = Parameter(name="reaction_id", location="path", schema=Id, description="The reaction.")
LIMIT: Final = Parameter(name="limit", location="query", schema=Limit, description="The longest list to return.")
CURSOR: Final = Parameter(
    name="cursor",
    location="query",
    schema=Cursor,
    description="The next_cursor of the previous page.",
)
TRACEPARENT: Final = Parameter(
    name="traceparent", location="header", schema=str, description="The caller's span as W3C trace context."
)
IDEMPOTENCY_KEY: Final = Parameter(
    name="Idempotency-Key",
    location="header",
    schema=Key,
    description="A repeated request with the same key gets the first answer.",
)
KNOWN_TAG: Final = Parameter(
    name="If-None-Match", location="header", schema=str, description="The ETag of an answer that the caller has."
)


def key_of(request: Request) -> str | None:
    """The header `Idempotency-Key`. Clients encode characters beyond ASCII differently, so keys would differ."""
    key = request.header("idempotency-key")
    if key is not None and not key.isascii():
        raise UsageError(f"the header Idempotency-Key is printable ASCII, not {quoted(key)}")
    return key


def limit_of(request: Request, default: int, maximum: int = MAX_LIMIT) -> int:
    """The query parameter `limit`."""
    text = request.parameter("limit")
    return default if text is None else whole_number("limit", text, 1, maximum)

"""Fuzz targets: the cursors that callers send back, of pages and of streams."""

from base64 import urlsafe_b64encode
from contextlib import suppress
from zlib import crc32

from tape.core.errors import InvalidCursor, TapeError, UsageError
from tape.core.page import POSITIONS, decode_cursor, encode_cursor
from tape.core.run_query import RunQuery
from tape.core.text import replace_unstorable
from tape.server.http.request import Request
from tape.server.sse.options import MAX_CURSOR, StreamRequest
from tests.fuzz.inputs import text

QUESTION = "q"
KINDS = ((int,), (str,), (int, str), (int, int, str))


def page_cursor(data: bytes) -> None:
    """A cursor is refused, or a position that a store can compare and that its own cursor gives again.

    The checksum is no secret, so what it covers may be anything: it is added here, because no fuzzer guesses it.
    """
    given = text(data)
    _check_place(given)
    content = given.encode("utf-8", "surrogatepass")
    _check_place(_with_checksum(content, QUESTION))
    with suppress(InvalidCursor):
        RunQuery(prefix="a").decode(given)


def _with_checksum(content: bytes, question: str) -> str:
    return urlsafe_b64encode(crc32(question.encode() + content).to_bytes(4, "big") + content).decode().rstrip("=")


def _check_place(cursor: str) -> None:
    for kinds in KINDS:
        try:
            place = decode_cursor(cursor, *kinds, question=QUESTION)
        except InvalidCursor:
            continue
        if place is None:
            assert not cursor
            continue
        assert tuple(map(type, place)) == kinds
        assert all(part in POSITIONS if isinstance(part, int) else replace_unstorable(part) == part for part in place)
        assert decode_cursor(encode_cursor(place, QUESTION), *kinds, question=QUESTION) == place


def last_event_id(data: bytes) -> None:
    """A stream's cursor is refused, or a position that the same position as a header or parameter gives again."""
    header, _, query = data.partition(b"\n")
    for path_values in ({}, {"run_id": "r"}):
        try:
            found = _stream_request(header, query, path_values)
        except UsageError:
            continue
        assert found.after is None or 0 <= found.after <= MAX_CURSOR
        assert found.epoch is None or 0 <= found.epoch <= MAX_CURSOR
        if found.after is not None:
            again = _stream_request(str(found.after).encode(), query, path_values)
            assert again == found


def _stream_request(last_event_id: bytes, query: bytes, values: dict[str, str]) -> StreamRequest:
    headers = [(b"last-event-id", last_event_id)] if last_event_id else []
    scope = {"method": "GET", "raw_path": b"/events", "headers": headers, "query_string": query}
    request = Request(scope, _nothing)
    request.values = values
    return StreamRequest.of(request)


async def _nothing() -> dict[str, object]:
    raise TapeError("a stream has no body")

"""How large the beginning of a request may be."""

from typing import Final

from tape.server.http.refusals import HeadersTooLarge, UriTooLong

MAX_URL: Final = 8 * 1024
MAX_HEADERS: Final = 64
MAX_HEADER_BYTES: Final = 16 * 1024
ROOM: Final = MAX_URL + MAX_HEADER_BYTES + 1024  # the request line's other words, and what separates headers


class Head:
    """Counts a request's URL and headers while they arrive, and refuses what is over a limit."""

    __slots__ = ("_bytes", "_headers", "_url")

    def __init__(self) -> None:
        self._url = self._headers = self._bytes = 0

    def add_url(self, size: int) -> None:
        self._url += size
        if self._url > MAX_URL:
            raise UriTooLong(f"a URL is at most {MAX_URL:,} bytes")

    def add_header(self, size: int) -> None:
        self._headers += 1
        self._bytes += size
        if self._headers > MAX_HEADERS:
            raise HeadersTooLarge(f"a request has at most {MAX_HEADERS} headers")
        self._check(self._bytes, MAX_HEADER_BYTES)

    def check_unfinished(self, size: int) -> None:
        """Refuses a beginning that has come so far without an end: one header of it may be endless."""
        self._check(size, ROOM)

    def _check(self, size: int, most: int) -> None:
        if size > most:
            raise HeadersTooLarge(f"headers are at most {MAX_HEADER_BYTES:,} bytes")

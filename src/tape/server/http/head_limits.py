"""Limits on the URL and the headers of a request."""

from typing import Final

from tape.server.http.errors import HeadersTooLarge, UriTooLong

MAX_URL: Final = 8 * 1024
MAX_HEADERS: Final = 64
MAX_HEADER_BYTES: Final = 16 * 1024
MAX_HEAD: Final = MAX_URL + MAX_HEADER_BYTES + 1024  # with method, version and separators


class HeadLimits:
    """Counts the URL and the headers as they arrive, and refuses a request that exceeds a limit."""

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
        if self._bytes > MAX_HEADER_BYTES:
            raise headers_too_long()


def headers_too_long() -> HeadersTooLarge:
    return HeadersTooLarge(f"headers are at most {MAX_HEADER_BYTES:,} bytes")

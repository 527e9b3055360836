"""Reads and decompresses a body up to its limits."""

import zlib
from typing import Final

from tape.core.errors import TooLarge, UsageError, quoted
from tape.server.http.errors import UnsupportedMediaType

MAX_BODY: Final = 8 << 20
MAX_RATIO: Final = 20
SMALL: Final = 64 * 1024  # below this size any compression ratio is harmless

_GZIP: Final = 16 + zlib.MAX_WBITS


class BodyReader:
    """Collects a body, and refuses it as soon as it is too large or compressed too well."""

    def __init__(self, encoding: str | None, length: str | None) -> None:
        self._inflater = _inflater(encoding)
        self._body = bytearray()
        self._received = 0
        if length is not None and length.isdecimal() and int(length) > MAX_BODY:
            raise _too_large()

    def add(self, data: bytes) -> None:
        self._received += len(data)
        self._body += data if self._inflater is None else self._inflated(data)
        if len(self._body) > MAX_BODY:
            raise _too_large()
        if len(self._body) > max(SMALL, self._received * MAX_RATIO):
            raise TooLarge(f"a body is compressed at most {MAX_RATIO} to 1")

    def end(self) -> bytes:
        """The whole body."""
        if self._inflater is not None and (not self._inflater.eof or self._inflater.unused_data):
            raise UsageError("the body is not one whole gzip stream")
        return bytes(self._body)

    def _inflated(self, data: bytes) -> bytes:
        assert self._inflater is not None
        remaining = MAX_BODY + 1 - len(self._body)
        allowed = max(SMALL, self._received * MAX_RATIO) + 1 - len(self._body)
        try:
            return self._inflater.decompress(self._inflater.unconsumed_tail + data, min(remaining, allowed))
        except zlib.error as error:
            raise UsageError("the body is not gzip") from error


def _inflater(encoding: str | None) -> "zlib._Decompress | None":
    match (encoding or "identity").strip().lower():
        case "identity":
            return None
        case "gzip" | "x-gzip":
            return zlib.decompressobj(_GZIP)
        case other:
            raise UnsupportedMediaType(f"a body is plain or gzip, not {quoted(other)}")


def _too_large() -> TooLarge:
    return TooLarge(f"a body is at most {MAX_BODY:,} bytes")

"""A body while it arrives: unpacked as far as is allowed, and no further."""

import zlib
from typing import Final

from tape.core.errors import TooLarge, UsageError, quoted
from tape.server.http.refusals import UnsupportedMediaType

MAX_BODY: Final = 8 << 20
MAX_RATIO: Final = 20
SMALL: Final = 64 * 1024  # however well it was packed, so little hurts nobody

_GZIP: Final = 16 + zlib.MAX_WBITS


class Inflow:
    """Collects a body, and refuses it as soon as it is too large or blows up."""

    def __init__(self, encoding: str | None, length: str | None) -> None:
        self._inflater = _inflater(encoding)
        self._body = bytearray()
        self._packed = 0
        if length is not None and length.isdecimal() and int(length) > MAX_BODY:
            raise _too_large()

    def add(self, data: bytes) -> None:
        self._packed += len(data)
        self._body += data if self._inflater is None else self._inflated(data)
        if len(self._body) > MAX_BODY:
            raise _too_large()
        if len(self._body) > max(SMALL, self._packed * MAX_RATIO):
            raise TooLarge(f"a body is packed at most {MAX_RATIO} to 1")

    def end(self) -> bytes:
        """All of it."""
        if self._inflater is not None and (not self._inflater.eof or self._inflater.unused_data):
            raise UsageError("the body is not one whole gzip stream")
        return bytes(self._body)

    def _inflated(self, data: bytes) -> bytes:
        assert self._inflater is not None
        room = MAX_BODY + 1 - len(self._body)
        allowed = max(SMALL, self._packed * MAX_RATIO) + 1 - len(self._body)
        try:
            return self._inflater.decompress(self._inflater.unconsumed_tail + data, min(room, allowed))
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

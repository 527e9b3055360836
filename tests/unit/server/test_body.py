"""A body while it arrives: bounded in bytes, before and after it is unpacked."""

import gzip
import os
import tracemalloc
import zlib

import pytest

from tape.core.errors import TooLarge, UsageError
from tape.server.http.body import MAX_BODY, MAX_RATIO, SMALL, BodyReader
from tape.server.http.errors import UnsupportedMediaType

WHOLE = gzip.compress(b"{}")


def received(data: bytes, encoding: str | None = None, step: int = 65536, length: str | None = None) -> bytes:
    inflow = BodyReader(encoding, length)
    for start in range(0, len(data), step):
        inflow.add(data[start : start + step])
    return inflow.end()


@pytest.mark.parametrize("step", [1, 7, 65536])
def test_a_packed_body_is_what_was_packed(step: int) -> None:
    body = os.urandom(3000).hex().encode()

    assert received(gzip.compress(body), "gzip", step) == body
    assert received(body, None, step) == body


def test_a_body_of_exactly_the_limit_is_taken_and_one_byte_more_is_not() -> None:
    assert len(received(b"x" * MAX_BODY)) == MAX_BODY
    with pytest.raises(TooLarge, match="8,388,608"):
        received(b"x" * (MAX_BODY + 1))


def test_a_length_that_is_over_the_limit_is_refused_before_a_byte_comes() -> None:
    with pytest.raises(TooLarge):
        BodyReader(None, str(MAX_BODY + 1))


def test_a_bomb_is_refused_without_being_unpacked() -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = b"".join([*(packer.compress(bytes(1 << 20)) for _ in range(100)), packer.flush()])

    tracemalloc.start()
    with pytest.raises(TooLarge, match="20 to 1"):
        received(bomb, "gzip")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 4 << 20


def test_what_is_small_may_be_packed_as_well_as_can_be() -> None:
    assert received(gzip.compress(bytes(SMALL)), "gzip") == bytes(SMALL)
    with pytest.raises(TooLarge):
        received(gzip.compress(bytes(SMALL * MAX_RATIO)), "gzip")


@pytest.mark.parametrize("encoding", ["br", "deflate", "zstd", "gzip, gzip", "gzip,br", "*", ""])
def test_another_encoding_is_not_read(encoding: str) -> None:
    with pytest.raises(UnsupportedMediaType):
        BodyReader(encoding or "x", None)


@pytest.mark.parametrize(
    "data", [b"{}", WHOLE[:-3], WHOLE + b"more", WHOLE * 2, b""], ids=["plain", "cut", "more", "two", "empty"]
)
def test_what_is_not_one_whole_gzip_stream_is_refused(data: bytes) -> None:
    with pytest.raises(UsageError, match="gzip"):
        received(data, "gzip")

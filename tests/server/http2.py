"""HTTP/2 by hand, for what no well-behaved client would send."""

import socket
import struct
from types import TracebackType
from typing import NamedTuple, Self

from google.protobuf.message import Message

from tests.deadlines import DEADLINE_S

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, CONTINUATION = 0, 1, 3, 4, 6, 7, 9
END_STREAM, END_HEADERS = 1, 4
CANCEL, ENHANCE_YOUR_CALM = 8, 11
MAX_CONCURRENT_STREAMS = 3


class Frame(NamedTuple):
    kind: int
    flags: int
    stream: int
    body: bytes


class Connection:
    """A socket after the preface; it has read the server's settings."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), DEADLINE_S)
        self._file = self._socket.makefile("rb")
        self.send(PREFACE, frame(SETTINGS, 0, 0))
        self.settings = settings(self.read())

    def send(self, *parts: bytes) -> None:
        self._socket.sendall(b"".join(parts))

    def read(self) -> Frame:
        head = self._file.read(9)
        if len(head) < 9:
            raise ConnectionResetError("the server has hung up")
        size, kind, flags, stream = int.from_bytes(head[:3]), head[3], head[4], int.from_bytes(head[5:]) & 0x7FFFFFFF
        return Frame(kind, flags, stream, self._file.read(size))

    def find(self, kind: int) -> Frame:
        """The next frame of a kind."""
        while (found := self.read()).kind != kind:
            pass
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        self._socket.close()


def frame(kind: int, flags: int, stream: int, body: bytes = b"") -> bytes:
    return len(body).to_bytes(3) + bytes([kind, flags]) + stream.to_bytes(4) + body


def request_headers(stream: int, path: str, flags: int = END_HEADERS) -> bytes:
    """The headers of a call."""
    fields = {
        ":method": "POST",
        ":scheme": "http",
        ":path": path,
        ":authority": "localhost",
        "te": "trailers",
        "content-type": "application/grpc",
    }
    return frame(HEADERS, flags, stream, b"".join(field(name, value) for name, value in fields.items()))


def message(stream: int, request: Message) -> bytes:
    """The only message of a call, and its end."""
    body = request.SerializeToString()
    return frame(DATA, END_STREAM, stream, b"\x00" + len(body).to_bytes(4) + body)


def field(name: str, value: str) -> bytes:
    """A header that is not indexed; both parts are shorter than 127 bytes."""
    return b"\x00" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()


def reset(stream: int) -> bytes:
    return frame(RST_STREAM, 0, stream, CANCEL.to_bytes(4))


def settings(frame: Frame) -> dict[int, int]:
    assert frame.kind == SETTINGS
    return dict(struct.iter_unpack("!HI", frame.body))

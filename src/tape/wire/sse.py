"""Encodes frames as an SSE stream, and parses an SSE stream that arrives in any pieces."""

from base64 import b64encode
from typing import Annotated, Final, Literal, TypeAlias

import msgspec
from msgspec import Meta, Struct

from tape.core import codec
from tape.core.errors import SseFramingError
from tape.core.event import Entry
from tape.wire.frames import NAMES, SYNTHETIC, Checkpoint, Delivered, Frame, RunEnd, Synthetic

VERSION: Final = 1
MAX_BUFFER: Final = 16 * 1024 * 1024
COMMENT: Final = b":\n\n"  # a keepalive that fires no event

IdField: TypeAlias = Literal["seq", "global_seq"]

_BOM: Final = b"\xef\xbb\xbf"
_MAX_DIGITS: Final = 19

_write = msgspec.json.Encoder().encode


def frame(entry: Entry, *, by: IdField) -> bytes:
    """An entry with its payload byte for byte as it is stored. Other columns hardly contain what JSON escapes."""
    (
        global_seq, seq, ts_ms, _, _, _, run_id, kind, name, subject, version, _, _,
        trace_id, span_id, parent_span_id, attributes, text, blob,
    ) = entry  # fmt: skip
    place = seq if by == "seq" else global_seq
    if '"' in subject:
        subject = subject.replace('"', '\\"')
    more = "" if attributes == "{}" else _attribute_fields(attributes)
    return (
        f'id: {place}\nevent: {name}\ndata: {{"id":{place},"v":1,"type":"{name}","data":{_data(text, blob)},'
        f'"run_id":"{run_id}","seq":{seq},"global_seq":{global_seq},"kind":"{kind}","subject":"{subject}",'
        f'"ts_ms":{ts_ms},"schema_version":{version},"trace_id":"{trace_id}","span_id":"{span_id}",'
        f'"parent_span_id":"{parent_span_id}"{more}}}\n\n'
    ).encode()


def entry_json(entry: Entry) -> bytes:
    """An entry as the JSON object that a stream of its run sends."""
    return frame(entry, by="seq").partition(b"\ndata: ")[2][:-2]


def synthetic(value: Synthetic) -> bytes:
    """A frame about the stream itself; it has no id, so the client's cursor does not move."""
    name = NAMES[type(value)].encode()
    if isinstance(value, RunEnd):  # its fields stand beside its type
        return b"event: %b\ndata: %b\n\n" % (name, _write(value))
    return b'event: %b\ndata: {"v":1,"type":"%b","data":%b}\n\n' % (name, name, _write(value))


def checkpoint(place: int) -> bytes:
    """A cursor without an entry: browsers store it and fire no event."""
    return b"id: %d\n\n" % place


def retry(ms: int) -> bytes:
    """How long a client waits before it reconnects."""
    return b"retry: %d\n\n" % ms


class Parser:
    """Parses the frames of a stream whose bytes arrive in any pieces.

    Frames that are not Tape's are skipped and counted. The rest of a cut-off stream is a frame if its data is complete.
    """

    def __init__(self) -> None:
        self.retry_ms: int | None = None
        self.skipped = 0
        self._buffer = bytearray()
        self._searched = 0
        self._is_after_cr = False
        self._is_first = True

    def feed(self, chunk: bytes) -> list[Frame]:
        """The frames that this piece completes."""
        self._buffer += self._with_plain_ends(chunk)
        end = self._buffer.rfind(b"\n\n", self._searched)
        blocks = bytes(self._buffer[:end]).split(b"\n\n") if end >= 0 else []
        if end >= 0:
            del self._buffer[: end + 2]
        self._searched = max(0, len(self._buffer) - 1)
        _check_size(len(self._buffer) - 1)  # the last byte may be half a separator
        return [found for block in blocks if (found := self._read(block, True)) is not None]

    def end(self) -> list[Frame]:
        """The frame that the end of the stream left unfinished, if its data is complete."""
        block = bytes(self._buffer)
        self._buffer.clear()
        self._searched = 0
        found = self._read(block, False)
        return [] if found is None else [found]

    def _with_plain_ends(self, chunk: bytes) -> bytes:
        if self._is_after_cr and chunk:
            chunk = chunk.removeprefix(b"\n")
            self._is_after_cr = False
        if b"\r" not in chunk:
            return chunk
        self._is_after_cr = chunk.endswith(b"\r")
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _read(self, block: bytes, is_whole: bool) -> Frame | None:
        _check_size(len(block))
        data, place = self._fields(block)
        if data:
            return self._decoded(b"\n".join(data), is_whole)
        # An id that was cut off before its data is no checkpoint: its entry has not arrived.
        if is_whole and place is not None and place.isdigit() and len(place) <= _MAX_DIGITS:
            return Checkpoint(int(place))
        return None

    def _fields(self, block: bytes) -> tuple[list[bytes], bytes | None]:
        if self._is_first:
            block, self._is_first = block.removeprefix(_BOM), False
        data: list[bytes] = []
        place: bytes | None = None
        for line in block.split(b"\n"):
            name, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            if name == b"data":
                data.append(value)
            elif name == b"id" and b"\0" not in value:
                place = value
            elif name == b"retry" and value.isdigit() and len(value) <= _MAX_DIGITS:
                self.retry_ms = int(value)
        return data, place

    def _decoded(self, body: bytes, is_whole: bool) -> Frame | None:
        try:
            return _decode(body)
        except (ValueError, RecursionError):
            self.skipped += is_whole
            return None


class _Head(Struct):
    v: Annotated[int, Meta(ge=VERSION, le=VERSION)]
    type: str


class _Body(Struct):
    data: msgspec.Raw


_read_head = msgspec.json.Decoder(_Head).decode
_read_body = msgspec.json.Decoder(_Body).decode
_read_entry = msgspec.json.Decoder(Delivered).decode
_read_end = msgspec.json.Decoder(RunEnd).decode


def _decode(body: bytes) -> Frame:
    kind = SYNTHETIC.get(_read_head(body).type)
    if kind is None:
        return _read_entry(body)
    if kind is RunEnd:
        return _read_end(body)
    return msgspec.json.decode(_read_body(body).data, type=kind)


def _data(text: str | None, blob: bytes | None) -> str:
    if text is None:
        return f'"{b64encode(blob or b"").decode()}"'
    if "\n" in text or "\r" in text:  # Tape writes none; between JSON tokens all whitespace is equal
        return text.replace("\n", " ").replace("\r", " ")
    return text


def _attribute_fields(attributes: str) -> str:
    """The fields of a frame that come from an entry's attributes."""
    known = codec.parse_map(attributes)
    content_type = f',"content_type":{_text(known["content_type"])}' if "content_type" in known else ""
    client = f',"originatorClientId":{_text(known["client_id"])}' if "client_id" in known else ""
    return content_type + client


def _text(value: str) -> str:
    return _write(value).decode()


def _check_size(size: int) -> None:
    if size > MAX_BUFFER:
        raise SseFramingError(f"a frame is over {MAX_BUFFER:,} bytes; this is not a stream of ours")

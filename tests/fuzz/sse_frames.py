"""Fuzz targets: the frames of a stream, as the server encodes them and as the client parses them."""

import json
from dataclasses import dataclass, field
from typing import Any

from tape.core import codec
from tape.core.errors import TapeError
from tape.core.event import JSON, Event
from tape.core.ids import Epoch
from tape.wire import sse
from tape.wire.frames import Checkpoint, Delivered
from tests.fuzz.inputs import text


def sse_stream(data: bytes) -> None:
    """Bytes in any pieces give the same frames, one for each event that a browser would see, or it is counted."""
    cut = data[0] % (len(data) + 1) if data else 0
    stream = data[1:]
    whole, parser = sse.Parser(), sse.Parser()
    frames = whole.feed(stream)
    assert [*parser.feed(stream[:cut]), *parser.feed(stream[cut:])] == frames
    assert (parser.skipped, parser.retry_ms) == (whole.skipped, whole.retry_ms)
    assert parser.end() == whole.end()
    seen = Browser()
    seen.read(stream)
    assert sum(not isinstance(frame, Checkpoint) for frame in frames) + whole.skipped == len(seen.events)
    assert all(str(frame.id) == seen.normal_id(frame.id) for frame in frames if isinstance(frame, Checkpoint))


def sse_frame(data: bytes) -> None:
    """An entry that is sent arrives whole at our client and at a browser, whatever its payload holds."""
    name, subject, client, payload = (text(data).split("\n", 3) + [""] * 3)[:4]
    try:
        event = Event(
            run_id="r", type=name, subject=subject or None, attributes={"client_id": client} if client else None,
            **_payload(payload),
        )  # fmt: skip
    except TapeError:
        return
    entry = event.at(9, 4, 5, 0, Epoch(1))
    for by, place in (("seq", 4), ("global_seq", 9)):
        stream = sse.frame(entry, by=by)  # type: ignore[arg-type]
        [found] = sse.Parser().feed(stream)
        assert isinstance(found, Delivered) and (found.id, found.seq, found.global_seq) == (place, 4, 9)
        assert repr(found.payload) == repr(entry.payload)
        assert (found.type, found.subject, found.originator_client_id) == (name, entry.subject, client or None)
        seen = Browser()
        seen.read(stream)
        [(name_seen, place_seen, body)] = seen.events
        assert (name_seen, place_seen, json.loads(body)["id"]) == (name, str(place), place)


def _payload(given: str) -> dict[str, Any]:
    """JSON, or after an exclamation mark the bytes of a text."""
    if given.startswith("!"):
        return {"payload": given[1:].encode("utf-8", "surrogateescape"), "content_type": "text/plain"}
    return {"payload": codec.decode(given.encode("utf-8", "surrogateescape")), "content_type": JSON}


@dataclass
class Browser:
    """An event stream as the HTML standard interprets it: section 9.2.6, line by line."""

    events: list[tuple[str, str, str]] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)

    def read(self, stream: bytes) -> None:
        lines = stream.decode("utf-8", "replace").removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
        name, data, place = "", "", ""
        for line in lines.split("\n")[:-1]:
            if not line:
                self.ids.add(place)
                if data:
                    self.events.append((name or "message", place, data[:-1]))
                name = data = ""
                continue
            key, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if key == "event":
                name = value
            elif key == "data":
                data += f"{value}\n"
            elif key == "id" and "\0" not in value:
                place = value

    def normal_id(self, number: int) -> str | None:
        """The number, if an id of the stream was this number."""
        return next(
            (str(number) for each in self.ids if each.isascii() and each.isdigit() and int(each) == number), None
        )

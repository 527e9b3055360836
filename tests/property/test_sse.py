"""Encoding and decoding SSE frames, however the bytes are split."""

import json
from collections.abc import Sequence
from itertools import pairwise

import httpx
from httpx_sse import EventSource
from hypothesis import given, strategies as st

from tape.core import codec
from tape.core.event import Event
from tape.core.ids import Epoch
from tape.wire import sse
from tape.wire.frames import Checkpoint, Delivered, Frame
from tape.wire.sse import Parser

HOSTILE = [
    "\n\ndata: {}\n\n", "\r", "\r\n\r\n", "\u2028", "\u2029", "\x85", "\x0b", "\x1e", "event: goaway", "id: 99\n", ":",
    "retry: 0\n", "\ufeff", '"}\n\ndata: {"v":1,"type":"goaway","data":{"reconnectAfterMs":1}}\n\n',
    "\\", '"', "é", "😀",
]  # fmt: skip
texts = st.lists(st.sampled_from(HOSTILE) | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
scalars = (
    st.none()
    | st.booleans()
    | st.integers(codec.MIN_INT, codec.MAX_INT)
    | st.floats(allow_nan=False, allow_infinity=False)
)
values = st.recursive(
    scalars | texts.map("".join),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts.map("".join), inner, max_size=4),
    max_leaves=10,
)
clients = st.none() | st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=20)
line_ends = st.sampled_from([b"\n", b"\r", b"\r\n"])
FILLERS = [
    sse.COMMENT,
    sse.retry(5),
    sse.checkpoint(3),
    b": a\n:b\n\n",
    b"\n",
    b"data: not ours\n\n",
    b"event: x\n\n",
]


@st.composite
def events(draw: st.DrawFn) -> Event:
    client = draw(clients)
    attributes = {"client_id": client} if client else None
    return Event(
        run_id="r1",
        payload=draw(values),
        subject="/a/" + draw(st.sampled_from(['"', "b", "%0A", "x:y"])),
        attributes=attributes,
    )


def cut(stream: bytes, places: Sequence[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(stream) + 1) for place in places), len(stream)]
    return [stream[start:end] for start, end in pairwise(edges)]


def read(pieces: Sequence[bytes]) -> list[Frame]:
    parser = Parser()
    return [frame for piece in pieces for frame in parser.feed(piece)] + parser.end()


@given(event=events(), numbers=st.tuples(st.integers(1, 2**63 - 1), st.integers(1, 2**63 - 1)))
def test_an_entry_comes_off_the_wire_as_it_went_on(event: Event, numbers: tuple[int, int]) -> None:
    entry = event.at(*numbers, 5, 0, Epoch(5))

    [found] = read([sse.frame(entry, by="seq")])

    assert isinstance(found, Delivered)
    assert codec.encode(found.payload) == entry.payload_json
    assert (found.id, found.seq, found.global_seq) == (entry.seq, entry.seq, entry.global_seq)
    assert (found.subject, found.originator_client_id) == (entry.subject, entry.attributes.get("client_id"))


@given(event=events())
def test_a_frame_is_three_lines_with_any_payload(event: Event) -> None:
    frame = sse.frame(event.at(2, 1, 5, 0, Epoch(5)), by="seq")

    number, name, data, *rest = frame.replace(b"\r", b"\n").split(b"\n")

    assert (number, name, rest) == (b"id: 1", b"event: message", [b"", b""])
    assert json.loads(data.removeprefix(b"data: "))["data"] == event.payload


@given(
    sent=st.lists(events(), max_size=4),
    filler=st.lists(st.sampled_from(FILLERS), max_size=4),
    end=line_ends,
    places=st.lists(st.integers(0, 1 << 20), max_size=30),
    has_mark=st.booleans(),
)
def test_frames_are_the_same_however_their_bytes_are_cut(
    sent: list[Event], filler: list[bytes], end: bytes, places: list[int], has_mark: bool
) -> None:
    frames = [sse.frame(event.at(n, n, 5, 0, Epoch(5)), by="seq") for n, event in enumerate(sent, 1)]
    blocks = [part for n in range(max(len(frames), len(filler))) for part in (*frames[n : n + 1], *filler[n : n + 1])]
    stream = b"\xef\xbb\xbf" * has_mark + b"".join(blocks).replace(b"\n", end)

    found = read(cut(stream, places))

    assert found == read([stream])
    assert [frame.id for frame in found if isinstance(frame, Delivered)] == list(range(1, len(sent) + 1))
    assert sum(isinstance(frame, Checkpoint) for frame in found) == filler.count(sse.checkpoint(3))


@given(sent=st.lists(events(), min_size=1, max_size=3), kept=st.integers(0, 1 << 20))
def test_a_stream_cut_off_anywhere_gives_a_prefix_of_it(sent: list[Event], kept: int) -> None:
    stream = b"".join(sse.frame(event.at(n, n, 5, 0, Epoch(5)), by="seq") for n, event in enumerate(sent, 1))
    whole = read([stream])

    found = read([stream[: kept % len(stream)]])

    assert found == whole[: len(found)]


@given(st.lists(st.binary(max_size=40) | st.sampled_from([b"data: ", b"id: 7", b"\n\n", b"\r", *FILLERS]), max_size=20))
def test_no_bytes_break_the_parser(pieces: list[bytes]) -> None:
    assert read(pieces) == read([b"".join(pieces)])


@given(st.lists(events(), max_size=4))
def test_a_foreign_reader_understands_every_frame(sent: list[Event]) -> None:
    entries = [event.at(n + 10, n, 5, 0, Epoch(5)) for n, event in enumerate(sent, 1)]
    stream = sse.retry(3000) + sse.COMMENT + b"".join(sse.frame(entry, by="global_seq") for entry in entries)

    judged = list(EventSource(answer(stream)).iter_sse())

    assert [(each.id, each.event) for each in judged if each.data] == [(str(e.global_seq), e.type) for e in entries]
    assert [each.json()["data"] for each in judged if each.data] == [event.payload for event in sent]


def answer(stream: bytes) -> httpx.Response:
    return httpx.Response(200, headers={"Content-Type": "text/event-stream"}, content=stream)

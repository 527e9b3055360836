"""Frames on the wire: what is written, and what is understood of it."""

import base64
import json

import pytest

from tape.core.errors import SseFramingError, TooLarge
from tape.core.event import SYNTHETIC, Entry, Event, Trace
from tape.core.ids import Epoch
from tape.wire import frames, sse
from tape.wire.frames import (
    Checkpoint,
    ClientEvicted,
    Delivered,
    Frame,
    Goaway,
    ReplayComplete,
    SlowClientWarning,
    StateResyncRequired,
    StreamError,
    Synthetic,
)
from tape.wire.sse import Parser

TRACE = Trace("a" * 32, "b" * 16, "c" * 16)
WORDS: list[Synthetic] = [
    ReplayComplete(replayed_count=3, last_event_id=7),
    SlowClientWarning(
        queue_size=192, max_queued=256, queued_bytes=9, max_queued_bytes=10, last_event_id=4, threshold="frames"
    ),
    ClientEvicted(reason="queue_overflow", dropped_after=4),
    StateResyncRequired(reason="ring_evicted", last_delivered_id=1, earliest_available_id=3),
    StreamError(error="the store did not answer"),
    Goaway(reconnect_after_ms=250),
]
GOOD = b'{"id":1,"v":1,"type":"t","data":0,"run_id":"r","seq":1,"global_seq":9}'
BAD = [
    b"not JSON",
    b"[]",
    b"null",
    b'"text"',
    GOOD.replace(b'"v":1', b'"v":2'),
    GOOD.replace(b'"v":1', b'"v":true'),
    GOOD.replace(b'"v":1,', b""),
    GOOD.replace(b'"type":"t",', b""),
    GOOD.replace(b'"type":"t"', b'"type":5'),
    GOOD.replace(b'"id":1', b'"id":"7"'),
    GOOD.replace(b'"id":1', b'"id":0'),
    GOOD.replace(b'"id":1', b'"id":1.5'),
    GOOD.replace(b'"id":1,', b""),
    GOOD.replace(b'"data":0', b'"data":"\xff"'),
    GOOD.replace(b'"data":0', b'"data":' + b"[" * 9999 + b"]" * 9999),
    b'{"v":1,"type":"goaway","data":{"reconnectAfterMs":"soon"}}',
    b'{"v":1,"type":"from_the_future","data":{}}',
]


def entry(payload: object = None, **fields: object) -> Entry:
    return Event(run_id="r1", payload=payload, **fields).at(12, 7, 1_700_000_000_000, 0, Epoch(5))  # type: ignore[arg-type]


def parsed(stream: bytes) -> list[Frame]:
    return Parser().feed(stream)


def ids(found: list[Frame]) -> list[int]:
    return [frame.id for frame in found if isinstance(frame, Delivered | Checkpoint)]


def lines(frame: bytes) -> list[str]:
    assert frame.endswith(b"\n\n")
    return frame.decode()[:-2].split("\n")


def test_an_entry_is_an_id_an_event_and_one_line_of_data() -> None:
    frame = sse.frame(entry({"text": "a\n\nb"}, type="token", subject='/a"b/c', trace=TRACE), by="seq")

    number, name, data = lines(frame)
    assert (number, name, data[:6]) == ("id: 7", "event: token", "data: ")
    assert json.loads(data[6:]) == {
        "id": 7, "v": 1, "type": "token", "data": {"text": "a\n\nb"}, "run_id": "r1", "seq": 7, "global_seq": 12,
        "kind": "event", "subject": '/a"b/c', "ts_ms": 1_700_000_000_000, "schema_version": 1,
        "trace_id": "a" * 32, "span_id": "b" * 16, "parent_span_id": "c" * 16,
    }  # fmt: skip


def test_a_stream_across_runs_is_numbered_by_global_seq() -> None:
    number, _, data = lines(sse.frame(entry(), by="global_seq"))

    assert number == "id: 12" and json.loads(data[6:])["id"] == 12


@pytest.mark.parametrize("place", [2**53 + 1, 2**63 - 1])
def test_an_id_beyond_what_a_double_holds_is_exact(place: int) -> None:
    stored = Event(run_id="r1", payload=None).at(place, place, 0, 0, Epoch(5))

    assert ids(parsed(sse.frame(stored, by="seq"))) == [place]


def test_a_payload_travels_byte_for_byte_as_it_is_stored() -> None:
    stored = entry({"é": [1.0, 1e300, -0.0, "\u2028\x1f"], "a": {}})

    frame = sse.frame(stored, by="seq")

    assert stored.payload_json is not None and f'"data":{stored.payload_json},'.encode() in frame


def test_a_stored_text_with_line_ends_stays_one_line() -> None:
    stored = entry()._replace(payload_json='{"a":\r\n1,\n"b":\r2}')

    _, _, data = lines(sse.frame(stored, by="seq"))

    assert json.loads(data[6:])["data"] == {"a": 1, "b": 2}


def test_a_payload_that_is_not_json_travels_as_base64_with_its_type() -> None:
    frame = sse.frame(entry(b"\0\xff\n\n", content_type="image/png"), by="seq")

    data = json.loads(lines(frame)[2][6:])
    [found] = parsed(frame)
    assert base64.b64decode(data["data"]) == b"\0\xff\n\n" and data["content_type"] == "image/png"
    assert isinstance(found, Delivered) and found.payload == b"\0\xff\n\n"


def test_a_frame_names_its_client() -> None:
    [found] = parsed(sse.frame(entry(attributes={"client_id": 'tab "1" é'}), by="seq"))

    assert isinstance(found, Delivered) and found.originator_client_id == 'tab "1" é'


def test_a_frame_without_a_client_names_none() -> None:
    assert b"originatorClientId" not in sse.frame(entry(attributes={"other": "x"}), by="seq")


@pytest.mark.parametrize("word", WORDS, ids=lambda word: frames.NAMES[type(word)])
def test_a_synthetic_frame_has_no_id_and_is_parsed_back(word: Synthetic) -> None:
    frame = sse.synthetic(word)

    assert b"id:" not in frame and parsed(frame) == [word]


def test_synthetic_frames_have_the_names_of_the_surface() -> None:
    name, data = lines(sse.synthetic(WORDS[1]))

    assert name == "event: slow_client_warning"
    assert json.loads(data[6:]) == {"v": 1, "type": "slow_client_warning", "data": {
        "queueSize": 192, "maxQueued": 256, "queuedBytes": 9, "maxQueuedBytes": 10, "lastEventId": 4,
        "threshold": "frames",
    }}  # fmt: skip


def test_no_event_type_can_be_the_name_of_a_synthetic_frame() -> None:
    assert set(frames.SYNTHETIC) < SYNTHETIC


def test_a_synthetic_frame_with_unknown_fields_is_parsed() -> None:
    assert parsed(b'data: {"v":1,"type":"goaway","data":{"reconnectAfterMs":5,"why":"x"}}\n\n') == [
        Goaway(reconnect_after_ms=5)
    ]


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"], ids=["LF", "CR", "CRLF"])
def test_every_line_end_of_the_standard_ends_a_line(end: str) -> None:
    stream = f"id: 1{end}data: {GOOD.decode()}{end}{end}id: 5{end}{end}"

    assert ids(parsed(stream.encode())) == [1, 5]


def test_line_ends_may_be_mixed() -> None:
    assert ids(parsed(b"\n\r: hi\rdata: " + GOOD + b"\n\r\nid: 4\r\r\nid: 5\r\n\n")) == [1, 4, 5]


def test_a_byte_order_mark_is_not_part_of_the_first_field() -> None:
    parser = Parser()

    found = [frame for byte in b"\xef\xbb\xbfid: 3\n\n" for frame in parser.feed(bytes([byte]))]

    assert found == [Checkpoint(3)]


def test_comments_and_unknown_fields_tell_nothing() -> None:
    assert parsed(b": beat\n\n:\n\nevent\n\nfoo: bar\n\n" + sse.COMMENT) == []


def test_a_comment_before_data_hides_nothing() -> None:
    assert ids(parsed(b": beat\nretry: 5\ndata: " + GOOD + b"\n\n")) == [1]


def test_the_pace_the_server_asks_for_is_remembered() -> None:
    parser = Parser()

    parser.feed(sse.retry(3000) + b"retry: soon\n\nretry: -1\n\n")

    assert parser.retry_ms == 3000


def test_lines_of_data_are_one_text() -> None:
    half = GOOD.index(b",") + 1

    assert ids(parsed(b"data:" + GOOD[:half] + b"\ndata:   " + GOOD[half:] + b"\n\n")) == [1]


def test_a_checkpoint_is_a_cursor_without_an_entry() -> None:
    assert parsed(sse.checkpoint(42)) == [Checkpoint(42)]


@pytest.mark.parametrize("text", [b"", b"x", b"-1", b"1.5", b"1e3", b"4\0", "４".encode(), b"9" * 20])
def test_an_id_that_is_no_position_is_no_checkpoint(text: bytes) -> None:
    assert parsed(b"id: " + text + b"\n\n") == []


@pytest.mark.parametrize("body", BAD, ids=lambda body: body[:50].decode(errors="replace"))
def test_what_is_not_a_frame_of_ours_is_skipped_and_counted(body: bytes) -> None:
    parser = Parser()

    found = parser.feed(b"data: " + body + b"\n\ndata: " + GOOD + b"\n\n")

    assert ids(found) == [1] and parser.skipped == 1


def test_a_frame_without_its_blank_line_is_returned_at_the_end() -> None:
    parser = Parser()

    assert parser.feed(b"id: 1\ndata: " + GOOD) == []
    assert ids(parser.end()) == [1]


@pytest.mark.parametrize("kept", range(1, len(b"id: 12\ndata: " + GOOD)))
def test_a_frame_that_was_cut_off_is_dropped(kept: int) -> None:
    parser = Parser()

    found = parser.feed((b"id: 12\ndata: " + GOOD)[:kept]) + parser.end()

    assert found == [] and parser.skipped == 0


def test_a_frame_of_16_mib_is_understood() -> None:
    room = sse.MAX_BUFFER - len(b"data: ") - len(GOOD) + 1
    body = GOOD.replace(b"0", b'"' + b"x" * (room - 2) + b'"', 1)

    assert ids(parsed(b"data: " + body + b"\n\n")) == [1]


@pytest.mark.parametrize("piece", [sse.MAX_BUFFER, 1 << 20], ids=["at once", "in pieces"])
def test_more_than_16_mib_without_an_end_is_an_error(piece: int) -> None:
    parser = Parser()
    stream = b"data: " + b"x" * sse.MAX_BUFFER

    with pytest.raises(SseFramingError) as caught:
        for start in range(0, len(stream), piece):
            parser.feed(stream[start : start + piece])

    assert isinstance(caught.value, TooLarge)


def test_more_than_16_mib_of_small_frames_is_no_error() -> None:
    parser = Parser()
    piece = sse.frame(entry("x" * 60_000), by="seq") * 10

    found = sum(len(parser.feed(piece)) for _ in range(30))

    assert found == 300

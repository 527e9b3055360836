"""Events: a bad one cannot exist."""

import pytest

from tape.core.errors import JsonLimit, ReservedSubject, TooLarge, UsageError
from tape.core.event import Event, Trace, check_producer
from tape.core.ids import Epoch
from tape.core.run import RunMeta

BAD_IDS = ["", "../../x", "a\0b", "%00", "a/b", "a b", "é", "x" * 129, "-a", ".a", "_a", "a\n", None, 7, b"a"]


@pytest.mark.parametrize("run_id", BAD_IDS)
def test_a_run_id_outside_its_grammar_is_refused(run_id: object) -> None:
    with pytest.raises(UsageError, match="run_id must be"):
        Event(run_id=run_id, payload=1)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", [*BAD_IDS, "open", "error", "replay_complete", "goaway", "stream_error"])
def test_a_type_outside_its_grammar_or_a_frames_name_is_refused(name: object) -> None:
    with pytest.raises(UsageError, match="type"):
        Event(run_id="r", payload=1, type=name)  # type: ignore[arg-type]


@pytest.mark.parametrize("version", [0, -1, 32768, True, 1.0, "1"])
def test_a_schema_version_is_a_small_positive_number(version: object) -> None:
    with pytest.raises(UsageError, match="schema_version"):
        Event(run_id="r", payload=1, schema_version=version)  # type: ignore[arg-type]


@pytest.mark.parametrize("cause", [0, -1, 1 << 63, True, "7"])
def test_a_cause_is_a_position(cause: object) -> None:
    with pytest.raises(UsageError, match="cause"):
        Event(run_id="r", payload=1, cause=cause)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "attributes",
    [{"A": "x"}, {"content_type": "x"}, {"a": 1}, {"a": "x\n"}, {"a": "x" * 1025}, {f"a{n}": "" for n in range(17)}],
)
def test_attributes_are_a_small_map_of_printable_text(attributes: object) -> None:
    with pytest.raises(UsageError, match="attribute"):
        Event(run_id="r", payload=1, attributes=attributes)  # type: ignore[arg-type]


def test_a_payload_is_at_most_one_mebibyte() -> None:
    assert Event(run_id="r", payload="x" * ((1 << 20) - 2)).size == 1 << 20

    with pytest.raises(TooLarge, match="1,048,576"):
        Event(run_id="r", payload="x" * ((1 << 20) - 1))
    with pytest.raises(TooLarge, match="1,048,576"):
        Event(run_id="r", payload=b"x" * ((1 << 20) + 1), content_type="text/plain")


def test_a_payload_that_json_cannot_hold_is_refused() -> None:
    with pytest.raises(JsonLimit):
        Event(run_id="r", payload={"n": float("nan")})
    with pytest.raises(UsageError, match="is bytes, not str"):
        Event(run_id="r", payload="text", content_type="text/plain")
    with pytest.raises(UsageError, match="content_type"):
        Event(run_id="r", payload=b"x", content_type="Text/Plain; charset=utf-8")


def test_an_events_bytes_are_fixed_when_it_is_made() -> None:
    payload = {"n": 1}
    event = Event(run_id="r", payload=payload)  # type: ignore[arg-type]

    payload["n"] = 2

    assert event.at(1, 1, 0, 0, Epoch(1)).payload == {"n": 1}


def test_an_event_without_a_subject_gets_one_from_its_type_and_run() -> None:
    assert Event(run_id="Run.1", payload=None, type="TurnStart").subject == "/tape/event/TurnStart/Run.1"


@pytest.mark.parametrize(
    "subject", ["/tape", "/tape/run/started/a", "/tape/event/appended/a/b/c", "/tape/event/appended", "/tape/value/x"]
)
def test_a_producer_may_not_use_what_is_reserved(subject: str) -> None:
    with pytest.raises(ReservedSubject):
        check_producer(Event(run_id="r", payload=1, subject=subject))


def test_a_producer_writes_events_to_its_own_runs_only() -> None:
    check_producer(Event(run_id="r", payload=1, subject="/tape/event/anything/else"))

    with pytest.raises(UsageError, match="kind 'event' only"):
        check_producer(Event(run_id="r", payload=1, kind="run"))
    with pytest.raises(UsageError, match="belong to Tape"):
        check_producer(Event(run_id="tape.x", payload=1))


@pytest.mark.parametrize("trace", [("x", "y"), ("A" * 32, "b" * 16), ("a" * 32, ""), ("", "b" * 16)])
def test_a_trace_is_hex(trace: tuple[str, str]) -> None:
    with pytest.raises(UsageError, match="hex"):
        Trace(*trace)


def test_a_changed_byte_is_noticed() -> None:
    entry = Event(run_id="r", payload={"a": 1}, trace=Trace("a" * 32, "b" * 16)).at(1, 1, 5, 0, Epoch(9))

    assert entry.is_intact
    assert not entry._replace(payload_json='{"a":2}').is_intact
    assert not entry._replace(subject="/other").is_intact
    assert not entry._replace(trace_id="c" * 32).is_intact
    assert not entry._replace(crc=entry.crc + 1).is_intact
    assert not entry._replace(payload_json="\udcff").is_intact
    assert not entry._replace(payload_json=None, payload_bytes="text").is_intact  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["\ud800", "x" * 1025, "a\nb", {"a": 1}, 7])
def test_the_metadata_of_a_run_is_short_printable_text(text: object) -> None:
    with pytest.raises(UsageError, match="label is printable text"):
        RunMeta(label=text)  # type: ignore[arg-type]

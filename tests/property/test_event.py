"""An entry gives back the event it was made from."""

from hypothesis import given, strategies as st

from tape.core.envelope import envelope_of
from tape.core.event import Event, Trace
from tape.core.ids import Epoch, RunId
from tests.property.test_codec import good

ids = st.from_regex("[A-Za-z0-9][A-Za-z0-9._-]{0,20}", fullmatch=True)
attributes = st.dictionaries(
    st.from_regex("[a-z][a-z0-9_]{0,9}", fullmatch=True), st.text("aé ☃'\"\\", max_size=9), max_size=16
)
traces = st.none() | st.builds(Trace, st.just("a" * 32), st.just("b" * 16), st.sampled_from(["", "c" * 16]))
fields = st.fixed_dictionaries(
    {
        "run_id": ids,
        "schema_version": st.integers(1, 32767),
        "event_id": ids,
        "cause": st.none() | st.integers(1, 2**63 - 1),
        "trace": traces,
        "attributes": attributes,
    }
)
texts = st.builds(lambda facts, payload: Event(payload=payload, **facts), fields, good)
blobs = st.builds(
    lambda facts, payload: Event(payload=payload, content_type="application/x-tape", **facts), fields, st.binary()
)
events = texts | blobs


@given(events)
def test_an_entry_gives_back_the_event_field_by_field(event: Event) -> None:
    entry = event.at(7, 3, 1_700_000_000_000, 0, Epoch(1))

    assert entry.event == event
    assert (entry.event.content, entry.event.crc) == (event.content, event.crc)


@given(events)
def test_an_event_given_back_becomes_the_same_entry(event: Event) -> None:
    entry = event.at(7, 3, 1_700_000_000_000, 0, Epoch(1))

    again = entry.event.at(7, 3, 1_700_000_000_000, 0, Epoch(1))

    assert again == entry and again.is_intact


def test_an_envelope_has_the_entrys_place_and_the_run_it_is_read_in() -> None:
    entry = Event(run_id="parent", payload=1).at(7, 3, 0, 0, Epoch(1))

    assert envelope_of(entry).run_id == "parent"
    assert (envelope_of(entry, RunId("child")).run_id, envelope_of(entry).seq) == ("child", 3)
    assert envelope_of(entry).event is envelope_of(entry, RunId("child")).event

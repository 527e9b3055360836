"""Laws of the fold: whatever happens to a reaction, what is in force follows from the entries alone."""

from collections.abc import Sequence

from hypothesis import given, strategies as st

from tape.core.event import Entry, Event
from tape.core.ids import Epoch
from tape.core.reaction import Reaction, from_definition
from tape.core.registration import Verb, defined, in_force, paused, removed

names = st.sampled_from(["a", "b"])
reactions = st.builds(
    Reaction,
    reaction_id=names,
    subject_pattern=st.sampled_from(["/x/**", "/y/*", ""]),
    debounce_ms=st.integers(0, 5),
    num_shards=st.integers(1, 9),
    bootstrap_from_head=st.booleans(),
)
events = st.one_of(
    st.builds(defined, st.just(Verb.REGISTERED), reactions),
    st.builds(defined, st.just(Verb.CHANGED), reactions, st.sampled_from(["", "maintenance"])),
    st.builds(paused, names, st.just("maintenance"), st.none()),
    st.builds(removed, names),
    st.just(Event(run_id="r", payload=1)),
)


def entries(said: Sequence[Event]) -> list[Entry]:
    return [event.at(place, place, 1, 0, Epoch(1)) for place, event in enumerate(said, 1)]


@given(reactions)
def test_a_definition_is_read_as_it_was_said(reaction: Reaction) -> None:
    assert from_definition(reaction.definition()) == reaction


@given(st.lists(events, max_size=12), st.lists(events, max_size=12))
def test_a_cursor_is_never_moved_by_what_is_said_later(before: list[Event], after: list[Event]) -> None:
    told = entries([*before, *after])
    then, now = in_force(told[: len(before)]), in_force(told)

    behind = {name: force.cursor for name, force in then.items() if force.cursor is not None}

    assert behind == {name: now[name].cursor for name in behind}


@given(st.lists(events, max_size=20))
def test_what_was_registered_is_there_until_the_end(said: list[Event]) -> None:
    forces = in_force(entries(said))

    assert all(force.versions for force in forces.values())
    assert all(force.cursor is not None for force in forces.values() if not force.is_matching)


@given(st.lists(events, max_size=20), st.integers(0, 25))
def test_moving_on_drops_no_version_that_is_still_needed(said: list[Event], cursor: int) -> None:
    for force in in_force(entries(said)).values():
        later = range(cursor + 1, 27)

        assert [force.reached(cursor).at(place) for place in later] == [force.at(place) for place in later]

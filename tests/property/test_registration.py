"""Invariants of the fold: the active reactions follow from the entries alone."""

from collections.abc import Sequence

from hypothesis import given, strategies as st

from tape.core.event import Entry, Event
from tape.core.ids import Epoch
from tape.core.reaction import Reaction, from_definition
from tape.core.registration import (
    ReactionState,
    Verb,
    after as following,
    defined,
    fold_registrations,
    paused,
    reaction_history,
    removed,
)

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
    st.builds(removed, names, st.integers(0, 9)),
    st.just(Event(run_id="r", payload=1)),
)


def entries(events: Sequence[Event]) -> list[Entry]:
    return [event.at(place, place, 1, 0, Epoch(1)) for place, event in enumerate(events, 1)]


@given(reactions)
def test_a_definition_is_read_as_it_was_registered(reaction: Reaction) -> None:
    assert from_definition(reaction.definition()) == reaction


@given(st.lists(events, max_size=12), st.lists(events, max_size=12))
def test_a_cursor_is_never_moved_by_later_entries(before: list[Event], after: list[Event]) -> None:
    journal = entries([*before, *after])
    then, now = fold_registrations(journal[: len(before)]), fold_registrations(journal)

    behind = {name: state.cursor for name, state in then.items() if state.cursor is not None}

    assert behind == {name: now[name].cursor for name in behind}


@given(st.lists(events, max_size=20))
def test_what_was_registered_is_there_until_the_end(events: list[Event]) -> None:
    states = fold_registrations(entries(events))

    assert all(state.versions for state in states.values())
    assert all(state.cursor is not None for state in states.values() if not state.is_matching)


@given(st.lists(events, max_size=20), st.integers(0, 25))
def test_moving_on_drops_no_version_that_is_still_needed(events: list[Event], cursor: int) -> None:
    for state in fold_registrations(entries(events)).values():
        later = range(cursor + 1, 27)

        assert [state.reached(cursor).at(place) for place in later] == [state.at(place) for place in later]


@given(st.lists(st.tuples(events, st.booleans()), max_size=20))
def test_which_definition_an_entry_is_matched_with_does_not_depend_on_when_a_matcher_comes_by(
    events: list[tuple[Event, bool]],
) -> None:
    journal = entries([event for event, _ in events])
    about = [entry for entry in journal if _about(entry) == "a"]

    matched = play([(entry, is_there) for entry, (_, is_there) in zip(journal, events, strict=True)])

    state = reaction_history(about)
    covered = [place for place in range(1, len(journal) + 1) if state is not None and state.covers(place)]
    assert matched == {place: state.at(place) for place in covered if state and (state.is_matching or place in matched)}


def play(journal: Sequence[tuple[Entry, bool]]) -> dict[int, Reaction]:
    """Which definition of `a` each entry meets, if the matcher catches up only where it is there, and at the end."""
    state: ReactionState | None = None
    matched: dict[int, Reaction] = {}
    for entry, is_there in journal:
        place = entry.global_seq
        if state is not None and state.is_matching and state.cursor is None:
            matched[place] = state.reaction
        state = following(state, entry) if _about(entry) == "a" else state
        if state is not None and (is_there or place == len(journal)):
            state = _caught_up(state, place, matched)
    return matched


def _caught_up(state: ReactionState, place: int, matched: dict[int, Reaction]) -> ReactionState:
    if not state.is_matching or state.cursor is None:
        return state
    matched |= {each: state.at(each) for each in range(state.cursor + 1, place + 1)}
    return state.joined()


def _about(entry: Entry) -> object:
    return entry.payload["reaction_id"] if isinstance(entry.payload, dict) else None

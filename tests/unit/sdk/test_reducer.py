"""State as a fold over a stream that may have lost something."""

import pytest

from tape.sdk.reducer import RESYNC_PASSTHROUGH_TYPES, Reducer, State
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
)

GAP = StateResyncRequired(reason="ring_evicted", last_delivered_id=1, earliest_available_id=5)
RESET = StateResyncRequired(reason="epoch_reset", last_delivered_id=70, earliest_available_id=3)
LATCHED: State[tuple[Frame, ...]] = State(value=(), cursor=1, awaiting_resync=True)

collect: Reducer[tuple[Frame, ...]] = Reducer(lambda seen, frame: (*seen, frame))


def entry(number: int, type: str = "delta") -> Delivered:
    return Delivered(id=number, type=type, payload=number, run_id="r1", seq=number, global_seq=number)


def fold(*frames: Frame, state: State[tuple[Frame, ...]] = State(value=())) -> State[tuple[Frame, ...]]:  # noqa: B008
    for frame in frames:
        state = collect(state, frame)
    return state


def test_every_event_of_a_whole_stream_is_applied() -> None:
    frames = (entry(1), ReplayComplete(replayed_count=1, last_event_id=1), entry(2))

    assert fold(*frames) == State(value=frames, cursor=2)


def test_a_lost_interval_latches_and_deltas_no_longer_apply() -> None:
    state = fold(entry(1), GAP, entry(5), entry(6))

    assert state.awaiting_resync and state.value == (entry(1), GAP)


def test_the_cursor_moves_on_while_latched() -> None:
    assert fold(GAP, entry(5), entry(6), Checkpoint(9)).cursor == 9


@pytest.mark.parametrize(
    "frame",
    [
        GAP,
        ClientEvicted(reason="queue_overflow", dropped_after=5),
        StreamError(error="no"),
        Goaway(reconnect_after_ms=1),
        entry(5, "session_snapshot"),
        entry(5, "session_died"),
        entry(5, "session_closed"),
        entry(5, "recording_degraded"),
    ],
    ids=lambda frame: getattr(frame, "type", type(frame).__name__),
)
def test_what_does_not_build_on_the_lost_part_applies_while_latched(frame: Frame) -> None:
    state = collect(LATCHED, frame)

    assert state.value == (frame,) and state.awaiting_resync


@pytest.mark.parametrize(
    "frame",
    [
        entry(5),
        ReplayComplete(replayed_count=1),
        SlowClientWarning(queue_size=1, max_queued=1, queued_bytes=1, max_queued_bytes=1, threshold="frames"),
    ],
    ids=lambda frame: type(frame).__name__,
)
def test_everything_else_is_passed_over_while_latched(frame: Frame) -> None:
    assert collect(LATCHED, frame).value == ()


def test_only_the_consumer_clears_the_latch() -> None:
    cleared = fold(GAP, entry(5)).resynced((entry(5),))

    assert fold(entry(6), state=cleared) == State(value=(entry(5), entry(6)), cursor=6)


def test_another_journal_takes_the_cursor_to_its_own_beginning() -> None:
    assert fold(entry(70), RESET).cursor == 2


def test_a_reducer_may_know_snapshots_of_its_own() -> None:
    knowing = Reducer(collect.fold, RESYNC_PASSTHROUGH_TYPES | {"world"})

    assert knowing(LATCHED, entry(5, "world")).value == (entry(5, "world"),)


def test_reducing_changes_nothing_in_place() -> None:
    before = fold(entry(1))

    collect(before, GAP)

    assert before == fold(entry(1))

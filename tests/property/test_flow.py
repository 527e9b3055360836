"""Invariants of warning and eviction over any course of a backlog."""

from collections.abc import Iterator

from hypothesis import given, strategies as st

from tape.core.flow import Evict, EvictReason, Flow, FlowAction, Threshold, Warn

flows = st.builds(Flow, max_queued=st.integers(16, 40), max_bytes=st.integers(1, 4000))
courses = st.lists(st.tuples(st.integers(0, 45), st.integers(0, 4500)), max_size=40)


def replay(flow: Flow, course: list[tuple[int, int]]) -> Iterator[tuple[float, float, FlowAction]]:
    """Each backlog as shares of its caps, and the action for it."""
    for entries, size in course:
        flow, signal = flow.observe(entries, size)
        yield entries / flow.max_queued, size / flow.max_bytes, signal


@given(flows, courses)
def test_a_reader_is_evicted_exactly_when_it_is_beyond_a_cap(flow: Flow, course: list[tuple[int, int]]) -> None:
    evicted = [isinstance(signal, Evict) for _, _, signal in replay(flow, course)]

    assert evicted == [entries > flow.max_queued or (size > flow.max_bytes and entries > 1) for entries, size in course]


@given(flows, courses)
def test_an_eviction_names_the_cap_that_was_passed(flow: Flow, course: list[tuple[int, int]]) -> None:
    actions = [(frames > 1, signal.reason) for frames, _, signal in replay(flow, course) if isinstance(signal, Evict)]

    assert all((reason is EvictReason.QUEUE_OVERFLOW) == is_over for is_over, reason in actions)


@given(flows, courses)
def test_a_warning_comes_only_near_the_caps_it_names(flow: Flow, course: list[tuple[int, int]]) -> None:
    near = {(True, False): Threshold.FRAMES, (False, True): Threshold.BYTES, (True, True): Threshold.FRAMES_AND_BYTES}

    actions = [(frames >= 0.75, size >= 0.75, signal) for frames, size, signal in replay(flow, course)]

    assert all(near[many, big] is signal.threshold for many, big, signal in actions if isinstance(signal, Warn))


@given(flows, courses)
def test_between_two_warnings_both_backlogs_were_low(flow: Flow, course: list[tuple[int, int]]) -> None:
    is_armed, is_lawful = True, True

    for frames, size, signal in replay(flow, course):
        is_lawful = is_lawful and (is_armed or not isinstance(signal, Warn))
        is_armed = (is_armed and not isinstance(signal, Warn)) or (frames <= 0.375 and size <= 0.375)

    assert is_lawful


@given(flows, st.integers(0, 45), st.integers(0, 4500))
def test_a_reader_near_a_cap_is_warned_once(flow: Flow, entries: int, size: int) -> None:
    is_near = 4 * entries >= 3 * flow.max_queued or 4 * size >= 3 * flow.max_bytes

    after, signal = flow.observe(entries, size)
    _, again = after.observe(entries, size)

    assert isinstance(signal, Warn | Evict) == is_near
    assert isinstance(again, Evict) == isinstance(signal, Evict)
    assert not isinstance(again, Warn)

"""When a slow live reader is warned, and when it is evicted."""

import pytest

from tape.core.errors import InvalidMaxQueued, UsageError
from tape.core.flow import Evict, EvictReason, Flow, FlowAction, Steady, Threshold, Warn, check_max_queued

MIB = 1024 * 1024


def signals(flow: Flow, *lags: tuple[int, int]) -> list[FlowAction]:
    """The actions for a sequence of backlogs."""
    actions = []
    for entries, size in lags:
        flow, signal = flow.observe(entries, size)
        actions.append(signal)
    return actions


@pytest.mark.parametrize("max_queued", [16, 256, 2048])
def test_a_cap_within_its_bounds_is_accepted(max_queued: int) -> None:
    assert check_max_queued(max_queued) == max_queued


@pytest.mark.parametrize("max_queued", [-1, 0, 15, 2049])
def test_a_cap_outside_its_bounds_is_refused(max_queued: int) -> None:
    with pytest.raises(InvalidMaxQueued, match="16 to 2,048"):
        check_max_queued(max_queued)


@pytest.mark.parametrize(("max_queued", "max_bytes"), [(0, 1), (1, 0)])
def test_a_cap_must_be_positive(max_queued: int, max_bytes: int) -> None:
    with pytest.raises(UsageError, match="at least 1"):
        Flow(max_queued=max_queued, max_bytes=max_bytes)


def test_a_reader_that_reads_nothing_is_warned_and_then_evicted_one_beyond_the_cap() -> None:
    actions = signals(Flow(max_queued=16), *((entries, 0) for entries in range(18)))

    assert actions[:12] == [Steady()] * 12
    assert actions[12:17] == [Warn(Threshold.FRAMES), *[Steady()] * 4]
    assert actions[17] == Evict(EvictReason.QUEUE_OVERFLOW)


def test_a_drained_reader_can_be_warned_again() -> None:
    actions = signals(Flow(max_queued=16), (12, 0), (13, 0), (6, 0), (12, 0))

    assert actions == [Warn(Threshold.FRAMES), Steady(), Steady(), Warn(Threshold.FRAMES)]


def test_a_reader_that_only_half_drains_is_not_warned_again() -> None:
    assert signals(Flow(max_queued=16), (12, 0), (7, 0), (12, 0))[1:] == [Steady(), Steady()]


def test_oscillating_around_the_threshold_is_one_episode() -> None:
    actions = signals(Flow(max_queued=100), *[(74, 0), (76, 0)] * 100)

    assert actions.count(Warn(Threshold.FRAMES)) == 1


@pytest.mark.parametrize(
    ("entries", "size", "threshold"),
    [(12, 0, Threshold.FRAMES), (2, 750, Threshold.BYTES), (12, 750, Threshold.FRAMES_AND_BYTES)],
)
def test_a_warning_names_every_cap_that_is_near(entries: int, size: int, threshold: Threshold) -> None:
    assert signals(Flow(max_queued=16, max_bytes=1000), (entries, size)) == [Warn(threshold)]


@pytest.mark.parametrize(("entries", "size"), [(6, 376), (7, 375)])
def test_both_backlogs_must_be_low_before_the_next_warning(entries: int, size: int) -> None:
    flow = Flow(max_queued=16, max_bytes=1000)

    actions = signals(flow, (12, 750), (entries, size), (12, 750), (6, 375), (12, 750))

    assert actions[2] == Steady()
    assert actions[4] == Warn(Threshold.FRAMES_AND_BYTES)


def test_bytes_beyond_their_cap_evict() -> None:
    assert signals(Flow(), (1, MIB), (2, 2 * MIB), (2, 2 * MIB + 1))[2] == Evict(EvictReason.QUEUE_BYTES_OVERFLOW)


def test_one_entry_of_any_size_is_accepted_and_the_next_one_evicts() -> None:
    actions = signals(Flow(), (1, 3 * MIB), (2, 3 * MIB + 1))

    assert actions == [Warn(Threshold.BYTES), Evict(EvictReason.QUEUE_BYTES_OVERFLOW)]


def test_beyond_both_caps_the_entries_are_the_reason() -> None:
    assert signals(Flow(), (257, 3 * MIB)) == [Evict(EvictReason.QUEUE_OVERFLOW)]


def test_replayed_entries_count_for_nothing() -> None:
    replayed_through, delivered = 100, 100
    flow = Flow(max_queued=16)

    actions = signals(flow, *((head - delivered, 0) for head in (replayed_through, 101, 116, 117)))

    assert actions[:2] == [Steady(), Steady()]
    assert actions[3] == Evict(EvictReason.QUEUE_OVERFLOW)


def test_a_flow_is_a_value() -> None:
    flow = Flow(max_queued=16)

    flow.observe(12, 0)

    assert flow == Flow(max_queued=16)

"""Invariants of retries, limits, debounce and shards that hold for every number."""

from datetime import timedelta

from hypothesis import given, strategies as st

from tape.core import limits
from tape.core.retry import CAP, JITTER, backoff
from tape.core.task import (
    DEBOUNCE_WINDOWS,
    Died,
    Done,
    Failed,
    RetrySettings,
    TaskStatus,
    due_at_ms,
    settled,
    shard_hash,
)

attempts = st.integers(1, 2_000)
jitters = st.floats(-1, 1)
bases = st.integers(0, 3_600_000).map(lambda ms: timedelta(milliseconds=ms))
times = st.integers(0, 2**50)
policies = st.builds(RetrySettings, st.integers(0, 50), st.integers(0, 3_600_000), st.integers(1, 50), st.just(False))


@given(attempts, bases, jitters)
def test_a_wait_is_never_longer_than_the_cap_and_a_tenth(attempt: int, base: timedelta, jitter: float) -> None:
    assert timedelta(0) <= backoff(attempt, base, jitter) <= CAP * (1 + JITTER)


@given(st.integers(1, 1_000), bases, jitters)
def test_a_wait_doubles_until_the_cap(attempt: int, base: timedelta, jitter: float) -> None:
    once, twice = backoff(attempt, base, 0), backoff(attempt + 1, base, 0)

    assert twice == min(once * 2, CAP)
    assert abs(backoff(attempt, base, jitter) - once) <= once * JITTER + timedelta(microseconds=1)


@given(policies, times, jitters)
def test_p12_a_task_dies_with_its_last_attempt_and_not_before(policy: RetrySettings, now: int, jitter: float) -> None:
    last = min(policy.retry_max + 1, policy.dlq_after_n)

    statuses = [settled(count, Failed("x"), policy, now, jitter).status for count in range(1, last + 1)]

    assert statuses == [TaskStatus.PENDING] * (last - 1) + [TaskStatus.DLQ]


@given(attempts, policies, times, jitters)
def test_status_4_is_never_written(count: int, policy: RetrySettings, now: int, jitter: float) -> None:
    outcomes = Done(), Failed("x"), Failed("x", timedelta(seconds=1)), Died("x")

    assert 4 not in {settled(count, outcome, policy, now, jitter).status for outcome in outcomes}


@given(
    st.integers(1, 5_000),
    st.lists(st.tuples(st.integers(0, 400_000), st.integers(0, 200)), min_size=1, max_size=60),
)
def test_p13_no_second_has_more_starts_than_the_rate_and_a_burst(rate: int, claims: list[tuple[int, int]]) -> None:
    now = next_start = 0
    starts: list[int] = []
    for pause, wanted in claims:
        now += pause
        shared = limits.share(wanted, slots=10_000, rate_per_s=rate, now_us=now, next_start_us=next_start)
        next_start = shared.next_start_us
        starts += [now] * shared.starts

    most = max((sum(1 for other in starts if at <= other < at + limits.SECOND_US) for at in starts), default=0)
    assert most <= rate + max(rate // limits.BURST, 1)


@given(st.integers(1, 5_000), st.integers(0, 10**7))
def test_p13_a_start_is_allowed_after_the_given_wait(rate: int, ahead: int) -> None:
    now = 10**9
    wait = limits.wait_us(rate, now, now + ahead)

    shared = limits.share(1, slots=1, rate_per_s=rate, now_us=now + wait, next_start_us=now + ahead)

    assert shared.starts == 1


@given(st.integers(0, 500), st.integers(-50, 500))
def test_p13_no_more_start_than_there_are_slots(wanted: int, slots: int) -> None:
    assert limits.share(wanted, slots=slots, rate_per_s=0, now_us=0, next_start_us=0).starts == max(
        min(wanted, slots), 0
    )


@given(times, st.integers(1, 86_400_000), st.integers(0, 10**9))
def test_a_debounced_task_is_due_a_window_after_its_newest_event_but_not_for_ever(
    first: int, window: int, later: int
) -> None:
    due = due_at_ms(first + later, first, window)

    assert due == first + later + window or due == first + DEBOUNCE_WINDOWS * window
    assert due <= first + DEBOUNCE_WINDOWS * window


def test_a_shard_is_the_same_in_every_process() -> None:
    assert [shard_hash(run_id) for run_id in ("r1", "r2", "")] == [219023793, 336025611, 0]

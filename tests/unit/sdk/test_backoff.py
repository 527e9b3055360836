"""How long a reader stays away."""

from datetime import timedelta

import pytest

from tape.sdk.backoff import Backoff

SECOND = timedelta(seconds=1)


@pytest.mark.parametrize(("failures", "seconds"), [(0, 1), (1, 2), (4, 16), (5, 30), (10_000, 30)])
def test_every_failure_doubles_the_wait_up_to_a_cap(failures: int, seconds: int) -> None:
    assert Backoff(failures=failures).delay(jitter=0) == seconds * SECOND


def test_readers_spread_over_half_of_the_wait_and_never_come_early() -> None:
    waits = [Backoff(retry=4 * SECOND).delay(jitter) for jitter in (0.0, 0.5, 0.999)]

    assert waits[:2] == [4 * SECOND, 5 * SECOND] and waits[2] < 6 * SECOND


def test_the_server_sets_the_pace_even_beyond_the_cap() -> None:
    asked = Backoff().with_retry(60_000)

    assert asked.delay(jitter=0) == 60 * SECOND


def test_a_server_that_asks_for_nothing_changes_nothing() -> None:
    assert Backoff().with_retry(None) == Backoff()


def test_the_wait_is_at_least_what_a_refusal_named() -> None:
    assert Backoff().delay(jitter=0, at_least=5 * SECOND) == 5 * SECOND


def test_a_success_forgets_the_failures() -> None:
    assert Backoff().failed().failed().succeeded() == Backoff()

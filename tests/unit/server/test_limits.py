"""Limits of open streams, per run and per server."""

from contextlib import ExitStack

import pytest

from tape.core.errors import SubscriberLimitExceeded, UsageError
from tape.core.ids import RunId
from tape.server.sse.subscribers import Subscribers

RUN, OTHER = RunId("run"), RunId("other")


def test_a_stream_beyond_the_limit_of_a_run_is_refused() -> None:
    subscribers = Subscribers(2)

    with ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(subscribers.join(RUN))
        with pytest.raises(SubscriberLimitExceeded) as refused, subscribers.join(RUN):
            pass
        stack.enter_context(subscribers.join(OTHER))

    assert refused.value.limit == 2


def test_a_closed_stream_frees_its_place() -> None:
    subscribers = Subscribers(1)

    with subscribers.join(RUN):
        pass

    with subscribers.join(RUN):
        assert len(subscribers) == 1
    assert len(subscribers) == 0


def test_a_server_has_1024_streams_of_runs_and_subjects_together() -> None:
    subscribers = Subscribers()

    with ExitStack() as stack:
        for number in range(1024):
            stack.enter_context(subscribers.join(RunId(f"r{number}") if number % 2 else None))
        with pytest.raises(SubscriberLimitExceeded) as refused, subscribers.join(None):
            pass

    assert refused.value.limit == 1024


def test_a_larger_cap_on_a_run_is_a_larger_cap_on_the_server() -> None:
    subscribers = Subscribers(1030)

    with ExitStack() as stack:
        for _ in range(1030):
            stack.enter_context(subscribers.join(RUN))

        assert len(subscribers) == 1030


def test_the_slowest_stream_is_the_lag() -> None:
    subscribers = Subscribers()

    with subscribers.join(RUN) as one, subscribers.join(None) as two:
        one.lag, two.lag = lambda: 3, lambda: 5

        assert subscribers.lag == 5


def test_goaways_have_different_delays() -> None:
    subscribers = Subscribers()
    delays: list[int] = []

    with ExitStack() as stack:
        for _ in range(10):
            stack.enter_context(subscribers.join(None)).goaway = delays.append
        subscribers.send_goaways()
        subscribers.send_goaways()

    assert len(set(delays)) == len(delays) == 10
    assert min(delays) >= 1000 and max(delays) <= 5000 and max(delays) - min(delays) >= 3000


def test_a_limit_of_zero_is_a_usage_error() -> None:
    with pytest.raises(UsageError):
        Subscribers(0)

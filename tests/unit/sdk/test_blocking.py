"""The client for programs without async."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Protocol

import pytest
from anyio.from_thread import start_blocking_portal

from tape.core.errors import RunNotFound, UsageError
from tape.sdk.blocking import Client
from tape.sdk.sse import Event
from tape.wire.frames import Delivered
from tests.unit.sdk.fake_server import (
    SHORT_RETRY,
    FakeServer,
    Response,
    answered,
    cut_off,
    ended,
    frames,
    held,
    serving,
)


class Play(Protocol):
    def __call__(self, *responses: Response) -> FakeServer: ...


@pytest.fixture
def play() -> Iterator[Play]:
    """Servers in a thread of their own, because the client waits in this one."""
    with ExitStack() as stack:
        portal = stack.enter_context(start_blocking_portal())
        yield lambda *responses: stack.enter_context(portal.wrap_async_context_manager(serving(*responses)))


def ids(events: list[Event]) -> list[int]:
    return [event.id for event in events if isinstance(event, Delivered)]


def test_a_stream_is_read_over_broken_connections_to_its_end(play: Play) -> None:
    server = play(cut_off(SHORT_RETRY, frames(1, 2)), ended(frames(3)))

    with Client(server.url) as client, client.events(run_id="r1") as stream:
        events = list(stream)

    assert ids(events) == [1, 2, 3] and server.cursors == [None, "2"]


def test_two_streams_of_a_client_are_read_side_by_side(play: Play) -> None:
    server = play(ended(frames(1, 2)), ended(frames(1, 2)))

    with Client(server.url) as client, client.events(run_id="r1") as one, client.events(run_id="r2") as other:
        pairs = list(zip(one, other, strict=True))

    assert [ids(list(pair)) for pair in pairs] == [[1, 1], [2, 2], []]


def test_a_refusal_is_raised_where_the_program_waits(play: Play) -> None:
    server = play(answered(404, b'{"code":"run_not_found"}'))

    with Client(server.url) as client, pytest.raises(RunNotFound):
        next(client.events(run_id="r1"))


def test_a_stream_left_early_lets_the_client_go(play: Play) -> None:
    server = play(held(SHORT_RETRY, frames(1), until=asyncio.Event()))

    with Client(server.url) as client:
        first = next(client.events(run_id="r1"))

    assert ids([first]) == [1]


def test_a_bad_question_is_refused_before_it_is_asked(play: Play) -> None:
    server = play()

    with Client(server.url) as client, pytest.raises(UsageError):
        client.events(run_id="no run")

    assert server.requests == []


def test_a_bad_url_leaves_no_thread_behind() -> None:
    before = threading.enumerate()

    with pytest.raises(UsageError), Client("tape://localhost"):
        pass

    assert threading.enumerate() == before

"""Which functions are handlers, and that none is taken for done before it is."""

from typing import Any

import pytest

from tape.core.errors import UsageError
from tape.core.event import Event
from tape.outbox import OutboxEvent, OutboxListener
from tape.outbox.forwarding import to_function
from tape.outbox.handling import takes_connection
from tests.outbox.places import Place, Seen, note, said


async def test_a_plain_function_that_gives_a_coroutine_is_waited_for(place: Place) -> None:
    seen = Seen()
    await place.said(said(1))

    async with place.listening({"orders.seen": lambda event: seen(event)}):
        await place.wait_until("delivered", 1)

    assert seen.numbers == [1]


async def test_what_such_a_coroutine_writes_is_in_the_transaction(place: Place) -> None:
    await place.said(said(1))

    async with place.listening({"orders.noted": lambda event, connection: note(event, connection)}):
        await place.wait_until("delivered", 1)

    assert await place.rows("SELECT n, note FROM orders WHERE note <> ''") == [(1, "handled")]


async def test_a_coroutine_that_fails_is_no_success(place: Place) -> None:
    seen = Seen(lambda _: RuntimeError("not yet"))
    await place.said(said(1))

    async with place.listening({"orders.seen": lambda event: seen(event)}):
        await place.wait_until("failed", 1)

    assert len(seen.events) == 6


class Relay:
    """An object that is called, and awaited."""

    def __init__(self) -> None:
        self.given: list[object] = []

    async def __call__(self, entry: object) -> None:
        self.given.append(entry)


@pytest.mark.parametrize("is_wrapped", [False, True])
async def test_a_relay_of_the_journal_waits_for_whatever_is_to_be_awaited(is_wrapped: bool) -> None:
    relay = Relay()
    entry: Any = Event(run_id="r1", payload={})

    await to_function((lambda given: relay(given)) if is_wrapped else relay)(entry)

    assert relay.given == [entry]


def of_event(event: OutboxEvent, *rest: object, **options: object) -> None: ...
def of_both(event: OutboxEvent, connection: object, **options: object) -> None: ...
def of_named(event: OutboxEvent, *, mood: str) -> None: ...


def test_a_handler_is_given_as_much_as_it_names() -> None:
    assert not takes_connection(of_event)
    assert takes_connection(of_both)


def test_a_handler_that_wants_more_than_there_is_is_refused_at_once() -> None:
    with pytest.raises(UsageError, match="event"):
        OutboxListener("sqlite:///x.db").listen(handler_name="orders.named", handler=of_named)

"""Which functions can be handlers, and when their result is awaited."""

from datetime import timedelta
from threading import Event
from typing import Any

import pytest

from tape.core import event as core_event
from tape.core.errors import UsageError
from tape.outbox import OutboxEvent, OutboxListener, RetryPolicy
from tape.outbox.forwarder import to_function
from tape.outbox.handling import takes_connection
from tests.deadlines import DEADLINE_S
from tests.outbox.business_database import BusinessDatabase, RecordingHandler, insert_handled, make_event


async def test_a_plain_function_that_gives_a_coroutine_is_waited_for(business: BusinessDatabase) -> None:
    seen = RecordingHandler()
    await business.publish(make_event(1))

    async with business.listening({"orders.seen": lambda event: seen(event)}):
        await business.wait_until("delivered", 1)

    assert seen.numbers == [1]


async def test_what_such_a_coroutine_writes_is_in_the_transaction(business: BusinessDatabase) -> None:
    await business.publish(make_event(1))

    async with business.listening({"orders.noted": lambda event, connection: insert_handled(event, connection)}):
        await business.wait_until("delivered", 1)

    assert await business.rows("SELECT n, note FROM orders WHERE note <> ''") == [(1, "handled")]


async def test_a_coroutine_that_fails_is_no_success(business: BusinessDatabase) -> None:
    seen = RecordingHandler(lambda _: RuntimeError("not yet"))
    await business.publish(make_event(1))

    async with business.listening({"orders.seen": lambda event: seen(event)}):
        await business.wait_until("failed", 1)

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
    entry: Any = core_event.Event(run_id="r1", payload={})

    await to_function((lambda given: relay(given)) if is_wrapped else relay)(entry)

    assert relay.given == [entry]


def of_event(event: OutboxEvent, *rest: object, **options: object) -> None: ...
def of_both(event: OutboxEvent, connection: object, **options: object) -> None: ...
def of_named(event: OutboxEvent, *, mood: str) -> None: ...


def test_a_handler_gets_the_arguments_that_it_names() -> None:
    assert not takes_connection(of_event)
    assert takes_connection(of_both)


def test_a_handler_with_other_parameters_is_refused_at_once() -> None:
    with pytest.raises(UsageError, match="event"):
        OutboxListener("sqlite:///x.db").listen(handler_name="orders.named", handler=of_named)


def test_a_plain_function_that_writes_can_have_no_deadline() -> None:
    listener = OutboxListener("sqlite:///x.db")

    with pytest.raises(UsageError, match="cannot be stopped"):
        listener.listen(handler_name="orders.plain", handler=of_both, deadline=timedelta(seconds=1))


async def test_a_plain_function_is_abandoned_at_its_deadline(business: BusinessDatabase) -> None:
    may_end = Event()
    once = {"deadline": timedelta(milliseconds=50), "retry_policy": RetryPolicy(retries=0)}
    await business.publish(make_event(1))

    async with business.listening({"orders.hangs": lambda _: may_end.wait(DEADLINE_S)}, listen=once):
        await business.wait_until("failed", 1)
        may_end.set()

    ((error,),) = await business.states("last_error")
    assert error.startswith("TimeoutError")

"""Failing handlers: retries, terminal errors and dead letters."""

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from random import Random
from typing import Any

import asyncpg
import msgspec
import psycopg
import pydantic
import pytest
import sqlalchemy.exc

from tape.core.outbox import HandlerSubscription, OutboxStatus, Settled, settled
from tape.core.task import Claimed, ClaimRequest, Died, Done, Failed, Settlement, Task, TaskClaim
from tape.outbox import DEFAULT_RETRY_POLICY, OutboxEvent, RetryPolicy, TerminalHandlerError, parse
from tape.outbox.database import open_outbox
from tape.outbox.failures import is_terminal
from tape.store.outbox.database import OutboxDatabase
from tape.store.outbox.deliveries import Deliveries
from tape.store.outbox.versions import HandlerVersions
from tests.outbox.business_database import BusinessDatabase, RecordingHandler, make_event


class Placed(msgspec.Struct):
    """A consumer's own model."""

    n: int


class PlacedModel(pydantic.BaseModel):
    """The same with pydantic."""

    n: int


def invalid() -> Exception:
    try:
        PlacedModel.model_validate({})
    except pydantic.ValidationError as error:
        return error
    raise AssertionError


TERMINAL = [
    TerminalHandlerError("no"),
    sqlite3.IntegrityError("unique"),
    asyncpg.UniqueViolationError("unique"),
    psycopg.IntegrityError("unique"),
    psycopg.errors.ForeignKeyViolation("parent"),
    sqlalchemy.exc.IntegrityError("statement", {}, Exception("unique")),
    msgspec.ValidationError("no such field"),
    invalid(),
]
TRANSIENT = [
    ConnectionError("gone"),
    TimeoutError("late"),
    sqlite3.OperationalError("locked"),
    psycopg.OperationalError("gone"),
    sqlalchemy.exc.OperationalError("statement", {}, Exception("gone")),
    ValueError("of the handler's own"),
    KeyError("n"),
    RuntimeError("whatever"),
]


@pytest.mark.parametrize("error", TERMINAL, ids=lambda error: type(error).__qualname__)
def test_these_errors_are_terminal(error: Exception) -> None:
    assert is_terminal(error)


@pytest.mark.parametrize("error", TRANSIENT, ids=lambda error: type(error).__qualname__)
def test_these_errors_are_retried(error: Exception) -> None:
    assert not is_terminal(error)


@pytest.mark.parametrize("attempts", range(1, 12))
def test_a_delay_lies_between_zero_and_the_backoff_or_the_cap(attempts: int) -> None:
    most = min(300.0, 2.0 ** (attempts - 1))
    chance = Random(attempts)

    delays = [DEFAULT_RETRY_POLICY.delay(attempts, chance.random()).total_seconds() for _ in range(200)]

    assert all(0 <= delay <= most for delay in delays) and max(delays) > most / 2


def test_the_default_is_five_retries_and_so_six_attempts() -> None:
    policy = DEFAULT_RETRY_POLICY

    assert (policy.retries, policy.attempts) == (5, 6)
    assert (policy.base, policy.multiplier, policy.cap) == (timedelta(seconds=1), 2.0, timedelta(minutes=5))


def test_an_attempt_ends_done_tried_again_or_dead() -> None:
    policy = RetryPolicy(retries=1)

    assert settled(Done(), 1, policy, 0.5).status == "delivered"
    assert settled(Failed("x"), 1, policy, 0.5) == Settled(OutboxStatus.PENDING, "x", timedelta(seconds=0.5))
    assert settled(Failed("x"), 2, policy, 0.5).status == "failed"
    assert settled(Died("x"), 1, policy, 0.5).status == "failed"


async def test_five_failures_and_then_success_are_six_attempts(business: BusinessDatabase) -> None:
    seen = RecordingHandler(lambda _: ConnectionError("not yet") if len(seen.events) < 6 else None)
    await business.publish(make_event(1))

    async with business.listening({"test.flaky": seen}):
        await business.wait_until("delivered", 1)

    assert await business.states("status, attempts") == [("delivered", 6)] and len(seen.events) == 6


async def test_six_failures_are_a_dead_letter_that_remembers_the_first(business: BusinessDatabase) -> None:
    seen = RecordingHandler(lambda _: ConnectionError(f"attempt {len(seen.events)}"))
    await business.publish(make_event(1))

    async with business.listening({"test.broken": seen}):
        await business.wait_until("failed", 1)

    ((attempts, error, first, ended),) = await business.states("attempts, last_error, first_failed_at, ended_at")
    assert (attempts, error) == (6, "ConnectionError: attempt 6") and first < ended and len(seen.events) == 6


async def test_an_attempt_claimed_before_the_previous_one_was_settled_has_its_event(
    business: BusinessDatabase,
) -> None:
    handler = HandlerSubscription(handler_name="test.seen", generation=0, channel="outbox_gen_0")
    request = ClaimRequest(owner="me", reaction_ids=("test.seen",), lease=timedelta(minutes=1))
    await business.publish(make_event(1))

    async with open_outbox(business.url) as database:
        hasty = Hasty(database)
        deliveries = Deliveries(hasty, [handler], {"test.seen": RetryPolicy(base=timedelta(), cap=timedelta())})
        await HandlerVersions(hasty, [handler]).register()
        (first,) = (await deliveries.claim(request)).tasks
        hasty.next = partial(deliveries.claim, request)
        (stale,) = await deliveries.settle([Settlement(TaskClaim(first.task_id, "me", first.attempt), Failed("no"))])
        (second,) = hasty.claimed

        assert stale is None and second.attempt == first.attempt + 1
        assert deliveries.claimed(TaskClaim(second.task_id, "me", second.attempt)).event.payload == {"n": 1}


class Hasty:
    """A database that claims between the commit of the next transaction and its answer."""

    def __init__(self, database: OutboxDatabase) -> None:
        self._database = database
        self.steps, self.schema, self.transaction = database.steps, database.schema, database.transaction
        self.next: Callable[[], Awaitable[Claimed]] | None = None
        self.claimed: Sequence[Task] = ()

    @asynccontextmanager
    async def own(self) -> AsyncIterator[Any]:
        async with self._database.own() as connection:
            yield connection
        if (claim := self.next) is not None:
            self.next = None
            self.claimed = (await claim()).tasks

    once = own


async def test_a_terminal_error_is_a_dead_letter_after_one_attempt(business: BusinessDatabase) -> None:
    seen = RecordingHandler(lambda _: TerminalHandlerError("never"))
    await business.publish(make_event(1))

    async with business.listening({"test.broken": seen}):
        await business.wait_until("failed", 1)

    assert await business.states("attempts, last_error") == [(1, "TerminalHandlerError: never")]


async def test_a_failing_event_blocks_no_other(business: BusinessDatabase) -> None:
    seen = RecordingHandler(lambda event: ConnectionError("poison") if event.payload["n"] == 0 else None)
    await business.publish(*(make_event(n) for n in range(20)))

    async with business.listening({"test.seen": seen}):
        await business.wait_until("delivered", 19)
        await business.wait_until("failed", 1)

    assert set(seen.numbers) == set(range(20))


@pytest.mark.parametrize("model", [Placed, PlacedModel])
def test_a_consumer_ignores_fields_it_does_not_know(model: type[Placed] | type[PlacedModel]) -> None:
    assert parse(make_event(1, payload={"n": 1, "new": True}), model).n == 1


@pytest.mark.parametrize("model", [Placed, PlacedModel])
def test_a_payload_without_a_field_that_is_needed_is_terminal(model: type[Placed] | type[PlacedModel]) -> None:
    with pytest.raises(TerminalHandlerError):
        parse(make_event(1, payload={}), model)


async def test_a_payload_that_does_not_fit_is_a_dead_letter_after_one_attempt(business: BusinessDatabase) -> None:
    async def handle(event: OutboxEvent) -> None:
        parse(event, Placed)

    await business.publish(make_event(1, payload={"n": 1}), make_event(2, payload={"n": 2}))
    bad = "jsonb '{}'" if business.name == "postgres" else "'{}'"
    await business.run(f"UPDATE {business.outbox} SET payload = {bad} WHERE position = 1")
    async with business.listening({"test.parses": handle}):
        await business.wait_until("failed", 1)

    assert (await business.states("status, attempts"))[0] == ("failed", 1)

"""Listeners: notifications, the poll behind them, and several workers."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import anyio
import psycopg
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

from tape.core.errors import UsageError
from tape.core.outbox import HandlerSubscription
from tape.core.task import ClaimRequest
from tape.outbox import OutboxEvent, OutboxListener, RetryPolicy, polling
from tape.outbox.database import open_outbox
from tape.store.outbox.deliveries import Deliveries
from tape.store.outbox.versions import HandlerVersions
from tests.deadlines import DEADLINE_S
from tests.outbox.business_database import BusinessDatabase, RecordingHandler, insert_handled, make_event, number
from tests.servers.databases import Databases
from tests.servers.proxy import Proxy

NEVER_S = 10 * DEADLINE_S
EFFECTS = "SELECT n FROM orders WHERE note = 'handled' ORDER BY n"


async def until_listening(listener: OutboxListener, wanted: bool = True) -> None:
    with anyio.fail_after(DEADLINE_S):
        while listener.is_listening is not wanted:  # noqa: ASYNC110 - there is no event for it
            await anyio.sleep(0.005)


async def test_a_commit_wakes_a_listener_before_its_poll(
    business: BusinessDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(polling, "POLL_S", NEVER_S)
    seen = RecordingHandler()
    async with business.listening({"test.seen": seen}) as listener:
        await until_listening(listener)
        await business.publish(make_event(1))
        await seen.wait_for(1)

        with anyio.fail_after(DEADLINE_S):
            await business.publish(make_event(2))
            await seen.wait_for(2)


async def test_without_notifications_an_event_is_handled_within_the_poll(
    postgres: BusinessDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    seen, proxy = RecordingHandler(), Proxy(postgres.url)
    async with proxy.open():
        listening = postgres.listening({"test.seen": seen}, listen_url=proxy.url)
        listener = await listening.__aenter__()
        await until_listening(listener)
    with caplog.at_level(logging.WARNING, "tape"):
        await until_listening(listener, wanted=False)

    with anyio.fail_after(DEADLINE_S):
        await postgres.publish(make_event(1))
        await seen.wait_for(1)
    await listening.__aexit__(None, None, None)

    assert "outbox.degraded" in caplog.messages


async def test_behind_a_pooler_the_listener_logs_it_and_polls(
    postgres: BusinessDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    seen, proxy = RecordingHandler(), Proxy(postgres.url)
    proxy.is_deaf = True

    async with proxy.open(), postgres.listening({"test.seen": seen}, listen_url=proxy.url) as listener:
        await until_degraded(caplog)
        await postgres.publish(make_event(1))
        with anyio.fail_after(DEADLINE_S):
            await seen.wait_for(1)

        assert not listener.is_listening


async def test_of_two_workers_one_handles_a_row(business: BusinessDatabase) -> None:
    one, other = RecordingHandler(), RecordingHandler()

    async with business.listening({"test.seen": one}), business.listening({"test.seen": other}):
        await business.publish(*(make_event(n) for n in range(40)))
        await business.wait_until("delivered", 40)

    assert sorted(one.numbers + other.numbers) == list(range(40))


async def test_an_unsettled_delivery_is_handled_after_its_lease(business: BusinessDatabase) -> None:
    seen = RecordingHandler()
    await business.publish(make_event(1))
    await claimed(business, attempts=6)

    async with business.listening({"test.seen": seen}):
        await business.wait_until("delivered", 1)

    assert await business.states("attempts") == [(2,)]


async def test_an_unsettled_last_attempt_is_a_dead_letter(business: BusinessDatabase) -> None:
    await business.publish(make_event(1))
    await claimed(business, attempts=1)

    once = {"retry_policy": RetryPolicy(retries=0)}
    async with business.listening({"test.seen": RecordingHandler()}, listen=once):
        await business.wait_until("failed", 1)

    ((error,),) = await business.states("last_error")
    assert error.startswith("no attempt was answered")


async def claimed(business: BusinessDatabase, attempts: int) -> None:
    """Claims without ever settling."""
    subscription = HandlerSubscription(
        handler_name="test.seen", generation=0, channel="outbox_gen_0", max_attempts=attempts
    )  # fmt: skip
    async with open_outbox(business.url) as database:
        deliveries = Deliveries(database, [subscription], {})
        await HandlerVersions(database, [subscription]).register()
        request = ClaimRequest(owner="lost", reaction_ids=("test.seen",), lease=timedelta(seconds=1))
        assert len((await deliveries.claim(request)).tasks) == 1


async def test_a_handler_can_write_through_a_session_of_sqlalchemy(postgres: BusinessDatabase) -> None:
    engine = create_async_engine(postgres.url.replace("postgresql://", "postgresql+asyncpg://"))

    @asynccontextmanager
    async def session() -> AsyncIterator[AsyncSession]:
        async with AsyncSession(engine) as session, session.begin():
            yield session

    async def write(event: OutboxEvent, session: AsyncSession) -> None:
        await session.execute(text("INSERT INTO orders (n, note) VALUES (:n, 'handled')"), {"n": number(event)})

    await postgres.publish(make_event(1), make_event(1, idempotency_key="k"), make_event(1, idempotency_key="k"))
    async with postgres.listening({"test.write": write}, transaction=session):
        await postgres.wait_until("delivered", 3)
    await engine.dispose()

    assert await postgres.rows(EFFECTS) == [(1,), (1,)]


async def test_a_handler_can_write_through_a_connection_of_psycopg(postgres: BusinessDatabase) -> None:
    @asynccontextmanager
    async def connected() -> AsyncIterator[psycopg.AsyncConnection[Any]]:
        async with await psycopg.AsyncConnection.connect(postgres.url) as connection:
            yield connection

    async def write(event: OutboxEvent, connection: psycopg.AsyncConnection[Any]) -> None:
        await connection.execute("INSERT INTO orders (n, note) VALUES (%s, 'handled')", (number(event),))

    await postgres.publish(make_event(1))
    async with postgres.listening({"test.write": write}, transaction=connected):
        await postgres.wait_until("delivered", 1)

    assert await postgres.rows(EFFECTS) == [(1,)]


async def test_the_span_of_a_handler_is_a_child_of_the_one_that_published(business: BusinessDatabase) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    inner: list[int] = []

    async def look(event: OutboxEvent) -> None:
        inner.append(trace.get_current_span().get_span_context().trace_id)

    with provider.get_tracer("test").start_as_current_span("business") as span:
        await business.publish(make_event(1))
    async with business.listening({"test.look": look}):
        await business.wait_until("delivered", 1)

    assert inner == [span.get_span_context().trace_id]


@pytest.mark.parametrize("name", ["nameless", "Orders.Writer", "a..b", ""])
def test_a_handler_is_named_with_its_scope(name: str, tmp_path: Any) -> None:
    listener = OutboxListener(f"sqlite:///{tmp_path / 'x.db'}")

    with pytest.raises(UsageError, match="scope"):
        listener.listen(handler_name=name, handler=insert_handled)


def test_two_handlers_cannot_have_one_name(tmp_path: Any) -> None:
    listener = OutboxListener(f"sqlite:///{tmp_path / 'x.db'}")
    listener.listen(handler_name="test.note", handler=insert_handled)

    with pytest.raises(UsageError, match="listens already"):
        listener.listen(handler_name="test.note", handler=RecordingHandler())


async def test_listening_in_another_database_is_detected(
    postgres: BusinessDatabase, postgres_databases: Databases, caplog: pytest.LogCaptureFixture
) -> None:
    with postgres_databases.database() as elsewhere:
        async with postgres.listening({"test.seen": RecordingHandler()}, listen_url=elsewhere) as listener:
            await until_degraded(caplog)

            assert not listener.is_listening


async def until_degraded(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "tape"), anyio.fail_after(DEADLINE_S):
        while "outbox.degraded" not in caplog.messages:  # noqa: ASYNC110 - only the log tells
            await anyio.sleep(0.01)


async def test_an_unreachable_listen_url_only_delays(postgres: BusinessDatabase) -> None:
    seen = RecordingHandler()
    closed = "postgresql://nobody@127.0.0.1:1/nothing"

    async with postgres.listening({"test.seen": seen}, listen_url=closed):
        await postgres.publish(make_event(1))
        with anyio.fail_after(DEADLINE_S):
            await seen.wait_for(1)

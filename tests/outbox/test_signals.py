"""Spans and log lines of the outbox."""

import logging
from collections.abc import Iterator
from datetime import timedelta
from uuid import uuid4

import anyio
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tape.core.task import TaskClaim, TaskId
from tape.outbox import OutboxEvent, RetryPolicy
from tape.outbox.database import open_outbox
from tape.outbox.polling import PolledQueue
from tape.store.outbox.deliveries import Deliveries
from tape.store.postgres.outbox_wake import warn_of_full_queue
from tests.outbox.business_database import BusinessDatabase, RecordingHandler, make_event, rows
from tests.outbox.test_claims import MINE

CANONICAL = {"generation", "channel", "trace_id", "span_id"}  # and the three of every line: ts_ms, level, event
OF_THE_EVENT = {"event_id", "event_type", "source", "target", "workspace_id"}
OF_AN_ATTEMPT = {"attempts", "duration_ms", "status_result", "handler_name"}


@pytest.fixture
def exporter(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """An application whose spans are kept."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    yield exporter
    provider.shutdown()


async def test_the_spans_go_from_the_business_through_the_publish_to_the_handler(
    business: BusinessDatabase, exporter: InMemorySpanExporter
) -> None:
    seen = RecordingHandler()
    with trace.get_tracer("test").start_as_current_span("business"):
        await business.publish(make_event(1))
    async with business.listening({"test.seen": seen}):
        await business.wait_until("delivered", 1)

    spans = {span.name: span for span in exporter.get_finished_spans()}
    outer, publish, handle = spans["business"], spans["publish orders.placed"], spans["handle test.seen"]
    assert parent(publish) == identity(outer.context) and publish.kind is trace.SpanKind.PRODUCER
    assert parent(handle) == identity(publish.context)
    assert tuple(int(each, 16) for each in seen.events[0].span) == identity(publish.context)


def parent(span: ReadableSpan) -> tuple[int, int]:
    return identity(span.parent)


def identity(context: trace.SpanContext | None) -> tuple[int, int]:
    assert context is not None
    return context.trace_id, context.span_id


async def test_an_event_that_names_its_span_keeps_it(
    business: BusinessDatabase, exporter: InMemorySpanExporter
) -> None:
    named = f"00-{'a' * 32}-{'b' * 16}-01"

    await business.publish(make_event(1, trace_context=named))

    assert await business.states("trace_context") == [(named,)]
    assert exporter.get_finished_spans() == ()


async def test_a_publish_that_fails_ends_its_span(business: BusinessDatabase, exporter: InMemorySpanExporter) -> None:
    event = make_event(1)
    await business.publish(event)

    with pytest.raises(Exception, match=r"(?i)unique"):
        await business.publish(event)

    assert [span.name for span in exporter.get_finished_spans()] == ["publish orders.placed"] * 2


async def test_publishing_and_handling_are_logged_with_their_fields_by_name(
    business: BusinessDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "tape"):
        await business.publish(make_event(1))
        async with business.listening({"test.seen": RecordingHandler()}):
            await business.wait_until("delivered", 1)

    facts = {record.message: getattr(record, "facts", {}) for record in caplog.records}
    assert set(facts["outbox.published"]) == CANONICAL | OF_THE_EVENT
    assert set(facts["outbox.handled"]) == CANONICAL | OF_THE_EVENT | OF_AN_ATTEMPT
    assert facts["outbox.handled"]["status_result"] == "delivered"


async def test_a_handler_that_exceeds_its_deadline_is_retried(
    business: BusinessDatabase,
) -> None:
    once = {"deadline": timedelta(milliseconds=50), "retry_policy": RetryPolicy(retries=0)}
    await business.publish(make_event(1))

    async with business.listening({"test.hangs": hang}, listen=once):
        await business.wait_until("failed", 1)

    ((error,),) = await business.states("last_error")
    assert error == "TimeoutError: it took longer than its deadline of 0.05 s"


async def hang(event: OutboxEvent) -> None:
    await anyio.sleep_forever()


async def test_what_a_handler_wrote_before_its_deadline_is_undone(business: BusinessDatabase) -> None:
    async def write(event: OutboxEvent, connection: object) -> None:
        await rows(connection, "INSERT INTO orders (n, note) VALUES (1, 'half')")
        await anyio.sleep_forever()

    once = {"deadline": timedelta(milliseconds=50), "retry_policy": RetryPolicy(retries=0)}
    await business.publish(make_event(1))
    async with business.listening({"test.writes": write}, listen=once):
        await business.wait_until("failed", 1)

    assert await business.rows("SELECT n FROM orders WHERE note = 'half'") == []


async def test_a_handler_that_never_ends_is_logged_once(
    business: BusinessDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    claim = TaskClaim(TaskId(f"test.mine:{uuid4()}"), "me", 1)

    async with open_outbox(business.url) as database:
        paced = PolledQueue(Deliveries(database, [MINE], {}), is_ordered=False, slow_s=0)
        with caplog.at_level(logging.WARNING, "tape"):
            await paced.extend([claim], timedelta(seconds=1))
            await paced.extend([claim], timedelta(seconds=1))

    assert caplog.messages == ["outbox.handler_slow"]
    assert getattr(caplog.records[0], "facts", {})["handler_name"] == "test.mine"


def test_a_queue_of_notifications_that_fills_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "tape"):
        warn_of_full_queue(0.249)
        warn_of_full_queue(0.25)

    assert caplog.messages == ["outbox.notify_queue_filling"]
    assert getattr(caplog.records[0], "facts", {}) == {"usage": 0.25}

"""Traces: the handler's span is a child of the entry that triggered it, and what it starts continues that trace."""

from collections.abc import AsyncIterator

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tape.bus.journal import Journal
from tape.compose import open_store, run_journal
from tape.core.event import Entry, Event, Trace
from tape.core.ports import Store
from tape.core.reaction import HandlerKind, Reaction
from tape.matcher.agents import invocation
from tape.matcher.dispatcher import Dispatcher, WorkerConfig
from tape.telemetry import current_trace
from tape.work.handler import handler
from tests.contract.reactions import reaction


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    """Where every span of this process goes."""
    if not isinstance(trace.get_tracer_provider(), TracerProvider):
        trace.set_tracer_provider(TracerProvider())
    provider, exporter = trace.get_tracer_provider(), InMemorySpanExporter()
    assert isinstance(provider, TracerProvider)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return exporter


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    async with open_store("memory://") as store:
        yield store


@pytest.fixture
async def journal(store: Store) -> AsyncIterator[Journal]:
    async with run_journal(store) as journal:
        yield journal


async def publish(journal: Journal) -> Entry:
    with trace.get_tracer("test").start_as_current_span("business"):
        (entry,) = await journal.append(Event(run_id="r1", payload=1, subject="/a/b"), open=True)
    return entry


def named(exporter: InMemorySpanExporter, name: str) -> ReadableSpan:
    (found,) = [span for span in exporter.get_finished_spans() if span.name == name]
    return found


async def test_a_handler_runs_in_a_child_of_the_span_that_published_the_event(
    store: Store, journal: Journal, exporter: InMemorySpanExporter
) -> None:
    seen: list[Trace | None] = []
    await store.reactions.register(reaction())
    entry = await publish(journal)

    await Dispatcher(store, WorkerConfig(handlers={"rule": handler(lambda: seen.append(current_trace()))})).run_once()

    (inside,) = seen
    parent = named(exporter, "handle rule").parent
    assert inside is not None and (inside.trace_id, inside.parent_span_id) == (entry.trace_id, entry.span_id)
    assert parent is not None and f"{parent.span_id:016x}" == entry.span_id


async def test_the_span_of_a_handler_that_fails_has_the_error(
    store: Store, journal: Journal, exporter: InMemorySpanExporter
) -> None:
    await store.reactions.register(reaction("failing", dlq_after_n=1))
    await publish(journal)

    await Dispatcher(store, WorkerConfig(handlers={"failing": handler(lambda: 1 // 0)})).run_once()

    assert named(exporter, "handle failing").status.status_code is trace.StatusCode.ERROR


async def test_a_run_that_an_agent_starts_goes_on_in_the_same_trace(
    store: Store, journal: Journal, exporter: InMemorySpanExporter
) -> None:
    rule = Reaction(reaction_id="agent", subject_pattern="/a/**", handler_kind=HandlerKind.AGENT, agent_app="app")
    await store.reactions.register(rule)
    entry = await publish(journal)

    await Dispatcher(store, WorkerConfig(handlers={}), journal).run_once()

    run_id = invocation("app", "agent", entry.global_seq).run_id
    (begun,) = [found async for found in journal.stream(run_id=run_id, follow=False)]
    assert (begun.trace_id, begun.parent_span_id) == (entry.trace_id, entry.span_id)

"""Traces: an event says which span it was said in, if the application has spans."""

import subprocess
import sys

from opentelemetry.sdk.trace import TracerProvider

from tape.compose import open_journal
from tape.core.event import Event, Trace
from tape.telemetry import current_trace

tracer = TracerProvider().get_tracer("tests")


async def test_an_event_said_in_a_span_carries_it_and_its_parent() -> None:
    async with open_journal("memory://") as journal:
        with tracer.start_as_current_span("outer") as outer, tracer.start_as_current_span("inner") as inner:
            (entry,) = await journal.append(Event(run_id="r", payload=1), open=True)

    assert entry.trace_id == f"{inner.get_span_context().trace_id:032x}"
    assert entry.span_id == f"{inner.get_span_context().span_id:016x}"
    assert entry.parent_span_id == f"{outer.get_span_context().span_id:016x}"
    assert entry.is_intact


async def test_a_trace_that_was_given_is_kept() -> None:
    given = Trace("a" * 32, "b" * 16)

    async with open_journal("memory://") as journal:
        with tracer.start_as_current_span("outer"):
            (entry,) = await journal.append(Event(run_id="r", payload=1, trace=given), open=True)

    assert (entry.trace_id, entry.span_id, entry.parent_span_id) == ("a" * 32, "b" * 16, "")


def test_outside_a_span_there_is_no_trace() -> None:
    assert current_trace() is None


def test_an_application_without_opentelemetry_never_loads_it() -> None:
    program = (
        "import sys, tape.telemetry as t; assert t.current_trace() is None; assert 'opentelemetry' not in sys.modules"
    )

    subprocess.run([sys.executable, "-c", program], check=True)

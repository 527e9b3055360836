"""Traces: an event names the span it was made in, if the application has spans."""

import re
import subprocess
import sys

from opentelemetry.sdk.trace import TracerProvider

from tape.compose import open_journal
from tape.core.event import Event, Trace
from tape.telemetry import Meters, current_trace
from tests.conftest import ROOT

tracer = TracerProvider().get_tracer("tests")


async def test_an_event_made_in_a_span_carries_it_and_its_parent() -> None:
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


async def test_a_fork_and_its_mutation_are_made_in_the_span_of_the_fork() -> None:
    async with open_journal("memory://") as journal:
        await journal.append(Event(run_id="r", payload=1), open=True)
        with tracer.start_as_current_span("outer") as outer:
            forked = await journal.fork("r", 1, mutation=1)

    assert [entry.span_id for entry in forked] == [f"{outer.get_span_context().span_id:016x}"] * 2


def test_outside_a_span_there_is_no_trace() -> None:
    assert current_trace() is None


def test_an_application_without_opentelemetry_never_loads_it() -> None:
    program = (
        "import sys, tape.telemetry as t; assert t.current_trace() is None; assert 'opentelemetry' not in sys.modules"
    )

    subprocess.run([sys.executable, "-c", program], check=True)


def test_every_metric_and_log_line_stands_in_the_table() -> None:
    table = (ROOT / "docs" / "signals.md").read_text()
    sources = "".join(path.read_text() for path in (ROOT / "src" / "tape").rglob("*.py"))
    lines = set(re.findall(r"log\.(?:info|warning|error)\(\s*\"([a-z_.]+)\"", sources))

    missing = {name for name in {meter.name for meter in Meters().all()} | lines if f"`{name}`" not in table}

    assert lines
    assert missing == set()

"""Plays the forks of a sweep in one Spark job; each task of the job plays some of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import pyarrow as pa

from tape.core import codec
from tape.core.codec import JsonValue
from tape.core.errors import UsageError
from tape.core.event import Entry, Event, check_producer
from tape.core.ids import Epoch, RunId
from tape.core.producer import Producer
from tape.lake.sink_batch import events_of
from tape.runs.replay import error_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FORKS_DDL: Final = "number BIGINT, run_id STRING, mutation_json STRING"
EVENTS: Final = pa.schema(
    [
        ("number", pa.int64()),
        ("run_id", pa.string()),
        ("type", pa.string()),
        ("subject", pa.string()),
        ("schema_version", pa.int64()),
        ("event_id", pa.string()),
        ("cause", pa.int64()),
        ("trace_id", pa.string()),
        ("span_id", pa.string()),
        ("parent_span_id", pa.string()),
        ("attributes_json", pa.string()),
        ("payload_json", pa.string()),
        ("error", pa.string()),
    ]
)
_DDL: Final = ", ".join(f"{each.name} {'BIGINT' if each.type == pa.int64() else 'STRING'}" for each in EVENTS)

LoadProducer: TypeAlias = Callable[[], Producer]
"""Finds the producer in the process that calls it, so that a task is sent the name and not the function."""


class PlannedFork(NamedTuple):
    """A fork to make: its run id and its mutation."""

    run_id: RunId
    mutation: JsonValue


class Continuation(NamedTuple):
    """The events that a producer emitted in a fork, and its error if it failed."""

    events: Sequence[Event]
    error: str | None = None


@dataclass(frozen=True, slots=True)
class ReplayTask:
    """What all forks share: the inherited entries, the producer, and the number of turns."""

    prefix: Sequence[Entry]
    load: LoadProducer
    n_turns: int

    def play(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Plays forks in a Spark worker; yields the events of each in order, then a row with its error."""
        producer = self.load()
        for batch in batches:
            for row in batch.to_pylist():
                yield pa.RecordBatch.from_pylist(list(self._rows(producer, row)), EVENTS)

    def _rows(self, producer: Producer, fork: dict[str, Any]) -> Iterator[dict[str, Any]]:
        sink, error = _CollectingSink(fork["run_id"]), None
        try:
            producer(self.prefix, codec.decode(fork["mutation_json"]), self.n_turns, sink)
        except Exception as raised:  # noqa: BLE001 - a producer may raise anything, and the others go on
            error = error_text(raised)
        for event in sink.events:
            yield {"number": fork["number"], **_columns(event)}
        yield {"number": fork["number"], "error": error}


class _CollectingSink:
    """Collects the events that a producer emits; raises UsageError for those it may not."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self.events: list[Event] = []

    def emit(self, event: Event) -> None:
        check_producer(event)
        if event.run_id != self.run_id:
            raise UsageError(f"the event's run_id {event.run_id!r} does not match {self.run_id!r}")
        if isinstance(event.payload, bytes):
            raise UsageError(f"a sweep takes JSON, not {event.content_type!r}; fork the run by itself")
        self.events.append(event)


def continuations(spark: SparkSession, task: ReplayTask, forks: Sequence[PlannedFork]) -> list[Continuation]:
    """Plays every fork in one job, with as many tasks as there are cores."""
    rows = [(number, fork.run_id, codec.encode(fork.mutation)) for number, fork in enumerate(forks)]
    found = spark.createDataFrame(rows, FORKS_DDL).mapInArrow(task.play, _DDL).toArrow().to_pylist()
    by_fork: list[list[dict[str, Any]]] = [[] for _ in forks]
    for row in found:
        by_fork[row.pop("number")].append(row)
    return [_continuation(each) for each in by_fork]


def _continuation(rows: Sequence[dict[str, Any]]) -> Continuation:
    *emitted, last = rows
    events = [{name: value for name, value in row.items() if name != "error"} for row in emitted]
    return Continuation(events_of(events), last["error"])


def _columns(event: Event) -> dict[str, Any]:
    """An event by the column names of entries; its position is not known yet."""
    entry = event.at(0, 0, 0, 0, Epoch(0))
    return {name: getattr(entry, name) for name in EVENTS.names[1:-1]}

"""How forks of one place go on, computed side by side: one Spark job, in which a task plays some of the forks."""

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
from tape.runs.replay import told

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ASKED: Final = "number BIGINT, run_id STRING, mutation_json STRING"
SAID: Final = pa.schema(
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
_DDL: Final = ", ".join(f"{each.name} {'BIGINT' if each.type == pa.int64() else 'STRING'}" for each in SAID)

LoadProducer: TypeAlias = Callable[[], Producer]
"""Finds the producer wherever it is called: what a task is sent is where to look, not the loop itself."""


class PlannedFork(NamedTuple):
    """A fork that is to be: the run it will be, and what is changed for it."""

    run_id: RunId
    mutation: JsonValue


class Continuation(NamedTuple):
    """What a producer said in a fork, and why it failed if it did."""

    events: Sequence[Event]
    error: str | None = None


@dataclass(frozen=True, slots=True)
class ReplayTask:
    """What all forks share: their history, who goes on, and for how long."""

    prefix: Sequence[Entry]
    load: LoadProducer
    n_turns: int

    def play(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Plays forks where Spark has put them; what is said of each comes back in order, and last how it failed."""
        producer = self.load()
        for batch in batches:
            for row in batch.to_pylist():
                yield pa.RecordBatch.from_pylist(list(self._rows(producer, row)), SAID)

    def _rows(self, producer: Producer, asked: dict[str, Any]) -> Iterator[dict[str, Any]]:
        sink, error = _Said(asked["run_id"]), None
        try:
            producer(self.prefix, codec.decode(asked["mutation_json"]), self.n_turns, sink)
        except Exception as raised:  # noqa: BLE001 - a producer may raise anything, and the others go on
            error = told(raised)
        for event in sink.events:
            yield {"number": asked["number"], **_columns(event)}
        yield {"number": asked["number"], "error": error}


class _Said:
    """A sink that keeps what a producer may say in its run."""

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
    """How every fork goes on, in one job; the forks are divided among as many tasks as there are cores."""
    rows = [(number, fork.run_id, codec.encode(fork.mutation)) for number, fork in enumerate(forks)]
    found = spark.createDataFrame(rows, ASKED).mapInArrow(task.play, _DDL).toArrow().to_pylist()
    said: list[list[dict[str, Any]]] = [[] for _ in forks]
    for row in found:
        said[row.pop("number")].append(row)
    return [_continuation(each) for each in said]


def _continuation(rows: Sequence[dict[str, Any]]) -> Continuation:
    *said, last = rows
    events = [{name: value for name, value in row.items() if name != "error"} for row in said]
    return Continuation(events_of(events), last["error"])


def _columns(event: Event) -> dict[str, Any]:
    """What a producer said, by the names that entries have for it; where it will stand is not known yet."""
    entry = event.at(0, 0, 0, 0, Epoch(0))
    return {name: getattr(entry, name) for name in SAID.names[1:-1]}

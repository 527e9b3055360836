"""Writes a producer's events directly into a DuckDB table, without a journal."""

from collections.abc import Iterable
from threading import Lock

from duckdb import DuckDBPyConnection

from tape.core.envelope import EventEnvelope
from tape.core.event import Event
from tape.core.ids import Seq
from tape.store.duckdb.events import EventRow, Events


class DuckDBEventSink:
    """Writes to the caller's connection, which it neither opens nor closes."""

    def __init__(self, connection: DuckDBPyConnection) -> None:
        self._events = Events(connection)
        self._events.create()
        self._lock = Lock()

    def emit(self, event: Event) -> Seq:
        """Writes an event as the next of its run."""
        with self._lock:
            seq = Seq(self._events.last(event.run_id).seq + 1)
            self._events.insert([EventRow.of_envelope(EventEnvelope(event.run_id, seq, event))])
            return seq

    def write(self, envelopes: Iterable[EventEnvelope]) -> None:
        """Writes envelopes with their seqs, all or none."""
        with self._lock:
            self._events.insert([EventRow.of_envelope(envelope) for envelope in envelopes])

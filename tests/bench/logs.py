"""Durable batches of 100 through the journal on Postgres against the Postgres recorder of eventsourcing."""

from collections.abc import Sequence
from functools import partial
from importlib import import_module
from time import perf_counter
from typing import Any
from urllib.parse import urlsplit
from uuid import NAMESPACE_URL, uuid5

from tape.core.event import Entry
from tests.bench.compare import Comparison
from tests.bench.postgres import AREA, ROWS, UNIT, journal
from tests.bench.servers import postgres
from tests.bench.workload import entries, events

BATCH = 100


def comparisons() -> list[Comparison]:
    name = "append of 100, events made, against the Postgres recorder of eventsourcing"
    return [Comparison(area=AREA, name=name, unit=UNIT, ours=partial(journal, BATCH), peer=recorder)]


def recorder() -> float:
    """Its own table, its own lock, its own notification; the payload as bytes, and less beside it than we keep."""
    library = import_module("eventsourcing.postgres")
    placed = entries(events(ROWS))
    with postgres().database() as url:
        place = urlsplit(url)
        datastore = library.PostgresDatastore(place.path[1:], place.hostname, place.port, place.username, "")
        recording = library.PostgresApplicationRecorder(datastore)
        recording.create_table()
        started = perf_counter()
        for first in range(0, ROWS, BATCH):
            recording.insert_events(_stored(placed[first : first + BATCH]))
        elapsed = perf_counter() - started
        datastore.close()
    return ROWS / elapsed


def _stored(batch: Sequence[Entry]) -> list[Any]:
    """Made while it is measured, as our events are."""
    stored = import_module("eventsourcing.persistence").StoredEvent
    return [
        stored(uuid5(NAMESPACE_URL, entry.run_id), int(entry.seq), entry.type, (entry.payload_json or "").encode())
        for entry in batch
    ]

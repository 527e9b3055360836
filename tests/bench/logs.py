"""Durable batches of 100 through the journal on Postgres against other logs: Redis, JetStream and eventsourcing."""

import asyncio
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from time import perf_counter
from typing import Any
from urllib.parse import urlsplit
from uuid import NAMESPACE_URL, uuid5

import redis

from tape.core.event import Entry
from tests.bench.compare import Comparison, Goal, Side
from tests.bench.loop import run
from tests.bench.postgres import AREA, ROWS, UNIT, store
from tests.bench.servers import jetstream, postgres, valkey
from tests.bench.workload import entries, events, set_aside

BATCH = 100


def comparisons() -> list[Comparison]:
    ours = partial(store, BATCH)
    return [
        _row("Redis XADD, pipelines of 100, AOF always", ours, redis_pipeline, 1.0),
        _row("JetStream, a window of 100, synced every two minutes", ours, jetstream_window, 1.2),
        _row("the Postgres recorder of eventsourcing", ours, recorder, 2.0),
    ]


def _row(name: str, ours: Side, peer: Side, bound: float) -> Comparison:
    return Comparison(
        area=AREA, name=f"append of 100 against {name}", unit=UNIT, ours=ours, peer=peer, goal=Goal(">=", bound)
    )


def redis_pipeline() -> float:
    fields: list[dict[Any, Any]] = [_fields(entry) for entry in entries(events(ROWS))]
    with redis.Redis.from_url(valkey("always").url) as client, set_aside():
        client.flushdb()
        started = perf_counter()
        for first in range(0, ROWS, BATCH):
            pipeline = client.pipeline(transaction=False)
            for each in fields[first : first + BATCH]:
                pipeline.xadd("bench", each)
            pipeline.execute()
        return ROWS / (perf_counter() - started)


def jetstream_window() -> float:
    return run(_jetstream([(entry.payload_json or "").encode() for entry in entries(events(ROWS))]))


async def _jetstream(payloads: Sequence[bytes]) -> float:
    connection = await import_module("nats").connect(jetstream().url)
    stream = connection.jetstream()
    await stream.add_stream(name="bench", subjects=["bench"], storage="file")
    with set_aside():
        started = perf_counter()
        for first in range(0, ROWS, BATCH):
            window = [await stream.publish_async("bench", payload) for payload in payloads[first : first + BATCH]]
            await asyncio.wait(window)
        elapsed = perf_counter() - started
    await stream.delete_stream("bench")
    await connection.close()
    return ROWS / elapsed


def recorder() -> float:
    """Its own table, its own lock, its own notification; the payload as bytes, and less beside it than we keep."""
    library, stored = import_module("eventsourcing.postgres"), import_module("eventsourcing.persistence").StoredEvent
    rows = [
        stored(uuid5(NAMESPACE_URL, entry.run_id), int(entry.seq), entry.type, (entry.payload_json or "").encode())
        for entry in entries(events(ROWS))
    ]
    with postgres().database() as url, set_aside():
        place = urlsplit(url)
        datastore = library.PostgresDatastore(place.path[1:], place.hostname, place.port, place.username, "")
        recording = library.PostgresApplicationRecorder(datastore)
        recording.create_table()
        started = perf_counter()
        for first in range(0, ROWS, BATCH):
            recording.insert_events(rows[first : first + BATCH])
        elapsed = perf_counter() - started
        datastore.close()
    return ROWS / elapsed


def _fields(entry: Entry) -> dict[str, str]:
    names = ("run_id", "type", "subject", "event_id", "trace_id", "span_id", "parent_span_id", "payload_json")
    return {name: str(getattr(entry, name)) for name in names}

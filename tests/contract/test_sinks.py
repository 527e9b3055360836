"""Sinks for the events of many runs, over any store."""

from collections.abc import Sequence

import anyio
import duckdb
import pytest

from tape.broker import EventEnvelope, MultiRunBrokerSink, RunId
from tape.bus.broker import Broker
from tape.lake import DuckDBEventSink
from tests.contract.brokers import R1, R2, drained, places
from tests.contract.events import make_event, upto


async def test_a_multi_run_sink_opens_runs_with_their_first_event_and_stores_all_by_close_all(broker: Broker) -> None:
    kept = Kept()
    sink = MultiRunBrokerSink(broker, kept, label="race", started_at="now")
    receipts = [sink.emit(make_event(f"r{n % 2 + 1}", n)) for n in range(10)]
    live = await broker.live_runs()

    await sink.close_all()

    assert {run.label for run in live} == {"race"} and len(live) == 2
    assert [await receipt for receipt in receipts] == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    assert places(kept.of(R1)) == places(kept.of(R2)) == upto(5)
    assert await drained(broker, R1) == [] and not await broker.live_runs()


async def test_a_multi_run_sink_emits_from_a_thread(broker: Broker) -> None:
    kept = Kept()
    sink = MultiRunBrokerSink(broker, kept)
    await broker.flush()

    await anyio.to_thread.run_sync(lambda: [sink.emit(make_event(n=n)) for n in range(2_500)])
    await sink.close_all()

    assert places(kept.of(R1)) == upto(2_500)


async def test_a_run_whose_copy_fails_is_closed_but_not_reaped(broker: Broker) -> None:
    sink = MultiRunBrokerSink(broker, Full())
    sink.emit(make_event())

    with pytest.raises(OSError, match="disk full"):
        await sink.close_all()

    assert not broker.is_open(R1) and places(await drained(broker)) == [1]


async def test_copies_in_duckdb_are_those_of_writing_there_directly(broker: Broker) -> None:
    events = [make_event(f"r{n % 3}", n) for n in range(300)]
    with duckdb.connect() as copied, duckdb.connect() as written:
        direct = DuckDBEventSink(written)
        sink = MultiRunBrokerSink(broker, DuckDBEventSink(copied))
        for event in events:
            direct.emit(event)
            sink.emit(event)
        await sink.close_all()

        assert rows(copied) == rows(written) and len(rows(copied)) == 300


def rows(connection: duckdb.DuckDBPyConnection) -> list[tuple[object, ...]]:
    found = connection.execute("SELECT run_id, seq, event_id, payload_json FROM events ORDER BY run_id, seq")
    return found.fetchall()


class Kept:
    """Copies in memory."""

    def __init__(self) -> None:
        self.envelopes: list[EventEnvelope] = []

    def write(self, envelopes: Sequence[EventEnvelope]) -> None:
        self.envelopes.extend(envelopes)

    def of(self, run_id: RunId) -> list[EventEnvelope]:
        return [envelope for envelope in self.envelopes if envelope.run_id == run_id]


class Full:
    """Where nothing can be kept any more."""

    def write(self, envelopes: object) -> None:
        raise OSError("disk full")

"""The contract of every broker, over any store."""

import asyncio
from datetime import timedelta
from random import Random

import anyio
import pytest

from tape.broker import BrokerEventSink, BrokerOverflowError, EventEnvelope, LiveRun, RunId, RunMeta
from tape.bus.broker import Broker
from tape.core.errors import InvalidCursor, RunClosed, RunNotFound, RunOpen, Unavailable, UsageError
from tape.core.event import Trace
from tape.core.lease import Lease
from tests.conftest import Scale
from tests.contract.brokers import (
    R1,
    R2,
    Brokers,
    Listener,
    bounded,
    counted,
    drained,
    durable,
    filled,
    places,
    publish,
    shared,
    taken,
    until,
)
from tests.contract.events import make_event, upto
from tests.deadlines import DEADLINE_S


async def test_published_events_are_numbered_from_1_and_streamed_in_order(broker: Broker) -> None:
    broker.open_run(R1)
    events = [make_event(n=n) for n in range(5)]
    seqs = [await broker.publish(R1, event) for event in events]
    broker.close_run(R1)

    streamed = await drained(broker)

    assert seqs == upto(5)
    assert streamed == [EventEnvelope(R1, seq, event) for seq, event in zip(seqs, events, strict=True)]


async def test_a_run_cannot_be_opened_twice(broker: Broker) -> None:
    broker.open_run(R1)

    with pytest.raises(ValueError, match="already open"):
        broker.open_run(R1)


async def test_nothing_is_published_before_a_run_is_opened(broker: Broker) -> None:
    with pytest.raises(RuntimeError, match="not open") as refused:
        await broker.publish(R1, make_event())

    assert isinstance(refused.value, RunNotFound)


async def test_nothing_is_published_after_a_run_is_closed(broker: Broker) -> None:
    await filled(broker, 1)

    with pytest.raises(RuntimeError, match="not open") as refused:
        await broker.publish(R1, make_event())

    assert isinstance(refused.value, RunClosed)


async def test_an_event_of_another_run_is_refused(broker: Broker) -> None:
    broker.open_run(R1)

    with pytest.raises(ValueError, match="does not match"):
        await broker.publish(R1, make_event("r2"))


async def test_an_open_run_cannot_be_reaped(broker: Broker) -> None:
    broker.open_run(R1)

    with pytest.raises(ValueError, match="cannot reap open run"):
        broker.reap(R1)


async def test_closing_and_reaping_an_unknown_run_is_silent(broker: Broker) -> None:
    broker.close_run(R1)
    broker.reap(R1)

    await broker.flush()


async def test_an_invalid_run_id_is_refused_at_once(broker: Broker) -> None:
    with pytest.raises(UsageError, match="run_id must be"):
        broker.open_run(RunId("../etc"))
    with pytest.raises(UsageError, match="belong to Tape"):
        broker.open_run(RunId("tape.value.00ff"))


async def test_a_stream_after_the_close_gets_everything(broker: Broker) -> None:
    await filled(broker, 5)

    assert places(await drained(broker)) == upto(5)


async def test_a_stream_begins_at_the_seq_it_was_asked_for(broker: Broker) -> None:
    await filled(broker, 5)

    assert places(await drained(broker, from_seq=3)) == [3, 4, 5]


async def test_from_seq_0_and_1_are_the_same(broker: Broker) -> None:
    await filled(broker, 2)

    assert places(await drained(broker, from_seq=0)) == places(await drained(broker, from_seq=1)) == [1, 2]


async def test_a_seq_beyond_the_head_raises(broker: Broker) -> None:
    await filled(broker, 2)

    with pytest.raises(InvalidCursor):
        await drained(broker, from_seq=9)
    with pytest.raises(InvalidCursor):
        await drained(broker, from_seq=-1)


async def test_an_unknown_run_streams_nothing_and_ends_at_once(broker: Broker) -> None:
    assert await drained(broker, RunId("nobody")) == []


@pytest.mark.parametrize("count", [2, 5])
async def test_all_readers_get_the_same(broker: Broker, count: int) -> None:
    broker.open_run(R1)
    await publish(broker, 1)
    async with anyio.create_task_group() as tasks:
        listeners = [Listener(broker) for _ in range(count)]
        for listener in listeners:
            tasks.start_soon(listener.listen)
            await listener.has(1)
        await publish(broker, 9)
        broker.close_run(R1)

    assert all(places(listener.got) == upto(10) for listener in listeners)
    assert all(listener.got == listeners[0].got for listener in listeners)


async def test_a_waiting_reader_ends_when_the_run_is_closed(broker: Broker) -> None:
    broker.open_run(R1)
    await publish(broker, 2)
    async with anyio.create_task_group() as tasks:
        listener = Listener(broker)
        tasks.start_soon(listener.listen)
        await listener.has(2)

        broker.close_run(R1)

        with anyio.fail_after(DEADLINE_S):
            await listener.is_over.wait()
    assert places(listener.got) == [1, 2] and listener.error is None


async def test_a_cancelled_reader_leaves_the_broker_usable(broker: Broker) -> None:
    broker.open_run(R1)
    await publish(broker, 1)
    before = len(asyncio.all_tasks())
    for _ in range(20):
        async with anyio.create_task_group() as tasks:
            listener = Listener(broker)
            tasks.start_soon(listener.listen)
            await listener.has(1)

            listener.scope.cancel()
            with anyio.fail_after(DEADLINE_S):
                await listener.is_over.wait()

    await until(lambda: len(asyncio.all_tasks()) <= before)  # a cancelled statement ends a moment later
    assert await broker.publish(R1, make_event(n=2)) == 2
    assert places(await taken(broker, 2)) == [1, 2]


async def test_readers_and_publishers_cancelled_at_any_moment_leave_no_task(broker: Broker, scale: Scale) -> None:
    broker.open_run(R1)
    await publish(broker, 1)
    before, chance = len(asyncio.all_tasks()), Random(7)
    for _ in range(scale(100)):
        with anyio.move_on_after(chance.uniform(0, 0.003)):
            await drained(broker)
        with anyio.move_on_after(chance.uniform(0, 0.001)):
            await broker.publish(R1, make_event())

    await until(lambda: len(asyncio.all_tasks()) <= before)  # a cancelled statement ends a moment later
    last = await broker.publish(R1, make_event())
    broker.close_run(R1)
    assert places(await drained(broker)) == upto(last)


@pytest.mark.parametrize("count", [0, 1, 5, 50, 200])
async def test_seqs_are_dense(broker: Broker, count: int) -> None:
    await filled(broker, count)

    assert places(await drained(broker)) == upto(count)


async def test_a_reaped_run_streams_nothing(broker: Broker) -> None:
    await filled(broker, 3)
    broker.reap(R1)

    assert await drained(broker) == []


async def test_a_reopened_run_continues_its_seqs_and_streams_its_new_incarnation_only(broker: Broker) -> None:
    await filled(broker, 3)
    broker.reap(R1)

    broker.open_run(R1)
    seq = await broker.publish(R1, make_event(n=4))
    broker.close_run(R1)

    assert seq == 4
    assert places(await drained(broker)) == places(await drained(broker, from_seq=2)) == [4]


@bounded
async def test_a_bounded_run_keeps_its_newest_events(brokers: Brokers) -> None:
    broker = brokers.make(max_events=3)
    await filled(broker, 5)

    with pytest.raises(BrokerOverflowError) as gap:
        await drained(broker)

    assert (gap.value.run_id, gap.value.requested_seq, gap.value.available_from) == (R1, 1, 3)
    assert places(await drained(broker, from_seq=3)) == [3, 4, 5]


@bounded
async def test_an_overtaken_reader_gets_the_gap(brokers: Brokers) -> None:
    broker = brokers.make(max_events=3)
    broker.open_run(R1)
    await publish(broker, 1)
    async with anyio.create_task_group() as tasks:
        listener = Listener(broker)
        tasks.start_soon(listener.listen)
        await listener.has(1)

        for n in range(4):
            broker.emit(R1, make_event(n=n))
        await listener.over()

    assert isinstance(listener.error, BrokerOverflowError)
    assert (listener.error.requested_seq, listener.error.available_from) == (2, 3)
    assert broker.metrics().streams_dropped == 1


@bounded
async def test_a_gap_is_raised_before_any_event(brokers: Brokers) -> None:
    broker = brokers.make(max_events=3)
    await filled(broker, 6)

    with pytest.raises(BrokerOverflowError) as gap:
        await drained(broker, from_seq=2)

    assert (gap.value.requested_seq, gap.value.available_from) == (2, 4)
    assert broker.metrics().to_dict() == counted(published=6, dropped=1)


@durable
async def test_a_durable_run_keeps_everything_whatever_max_events_says(brokers: Brokers) -> None:
    broker = brokers.make(max_events=3)
    await filled(broker, 20)

    assert places(await drained(broker)) == upto(20)


async def test_an_event_comes_back_field_by_field(broker: Broker) -> None:
    trace = Trace("a" * 32, "b" * 16)
    event = make_event(type="paid", schema_version=7, event_id="e-1", trace=trace, attributes={"client_id": "ü"})
    broker.open_run(R1)

    await broker.publish(R1, event)

    (envelope,) = await taken(broker, 1)
    assert envelope.event == event and envelope.event.crc == event.crc


async def test_an_open_run_is_open_for_every_broker_until_it_is_closed(brokers: Brokers) -> None:
    broker = brokers.make()
    other = brokers.make() if brokers.is_shared else broker
    broker.open_run(R1)
    await broker.flush()
    assert broker.is_open(R1) and await other.is_open_remote(R1)

    broker.close_run(R1)
    assert not broker.is_open(R1)
    await broker.flush()

    assert not await other.is_open_remote(R1)


async def test_an_unknown_run_is_open_nowhere(broker: Broker) -> None:
    assert not broker.is_open(R1) and not await broker.is_open_remote(R1)


async def test_live_runs_have_their_identity_and_count(broker: Broker) -> None:
    broker.open_run(R1, RunMeta(label="race", started_at="2026-05-21T10:00:00Z"))
    await publish(broker, 2)
    await filled(broker, 1, R2)

    live = await broker.live_runs()

    assert live == [LiveRun(run_id=R1, label="race", started_at="2026-05-21T10:00:00Z", n_events=2)]


async def test_a_run_without_identity_is_listed_without(broker: Broker) -> None:
    broker.open_run(R1)

    assert await broker.live_runs() == [LiveRun(run_id=R1, label=None, started_at=None, n_events=0)]


async def test_events_emitted_before_a_close_in_the_same_tick_are_stored(broker: Broker) -> None:
    broker.open_run(R1)
    sink = BrokerEventSink(broker, R1)
    events = [make_event(n=n) for n in range(100)]

    receipts = [sink.emit(event) for event in events]
    broker.close_run(R1)

    assert [envelope.event for envelope in await drained(broker)] == events
    assert [await receipt for receipt in receipts] == upto(100)


async def test_events_emitted_before_a_close_in_another_thread_are_stored(broker: Broker) -> None:
    events = [make_event(n=n) for n in range(100)]

    def produce() -> list[int]:
        broker.open_run(R1)
        receipts = [BrokerEventSink(broker, R1).emit(event) for event in events]
        broker.close_run(R1)
        return [receipt.result(10) for receipt in receipts]

    await broker.flush()
    seqs = await anyio.to_thread.run_sync(produce)

    assert seqs == upto(100)
    assert [envelope.event for envelope in await drained(broker)] == events


async def test_publish_keeps_its_order_among_emits(broker: Broker) -> None:
    broker.open_run(R1)

    first = broker.emit(R1, make_event(n=1))
    second = await broker.publish(R1, make_event(n=2))
    third = broker.emit(R1, make_event(n=3))

    assert (await first, second, await third) == (1, 2, 3)


async def test_a_failed_emit_is_raised_by_its_receipt(broker: Broker) -> None:
    receipt = broker.emit(R1, make_event())

    with pytest.raises(RunNotFound):
        await receipt
    await broker.flush()


async def test_a_failed_emit_that_nobody_retrieved_is_raised_by_flush(broker: Broker) -> None:
    broker.emit(R1, make_event())

    with pytest.raises(RunNotFound):
        await broker.flush()
    await broker.flush()


async def test_concurrent_publishers_get_different_seqs(broker: Broker) -> None:
    broker.open_run(R1)
    seqs: list[int] = []

    async def one(n: int) -> None:
        seqs.append(await broker.publish(R1, make_event(n=n)))

    async with anyio.create_task_group() as tasks:
        for n in range(50):
            tasks.start_soon(one, n)

    assert sorted(seqs) == upto(50)


async def test_metrics_count_what_was_published_and_streamed(broker: Broker) -> None:
    await filled(broker, 3)
    broker.open_run(R2)
    await drained(broker)

    assert broker.metrics().to_dict() == counted(published=3, streamed=3, runs_open=1)


async def test_a_closed_broker_refuses_every_call(brokers: Brokers) -> None:
    broker = brokers.make()
    await filled(broker, 1)

    await broker.aclose()

    with pytest.raises(Unavailable, match="the broker is closed"):
        await broker.publish(R1, make_event())
    with pytest.raises(Unavailable, match="the broker is closed"):
        broker.open_run(R2)


@shared
async def test_a_run_opened_by_another_broker_can_be_published_to_and_closed(brokers: Brokers) -> None:
    one, other = brokers.make(), brokers.make()
    one.open_run(R1)
    await publish(one, 1)

    assert await other.publish(R1, make_event(n=2)) == 2
    assert not other.is_open(R1)
    other.close_run(R1)

    assert places(await drained(other)) == [1, 2]


@shared
async def test_opening_a_run_that_is_open_elsewhere_is_refused_and_changes_nothing(brokers: Brokers) -> None:
    one, other = brokers.make(), brokers.make()
    one.open_run(R1)
    await one.flush()

    other.open_run(R1)
    receipt = other.emit(R1, make_event())
    with pytest.raises(RunOpen):
        await other.publish(R1, make_event())
    with pytest.raises(RunOpen):
        await receipt
    other.close_run(R1)
    await other.flush()

    assert not other.is_open(R1) and await one.is_open_remote(R1)
    assert await one.publish(R1, make_event()) == 1


@shared
async def test_flush_raises_that_a_run_is_open_elsewhere(brokers: Brokers) -> None:
    one, other = brokers.make(), brokers.make()
    one.open_run(R1)
    await one.flush()

    other.open_run(R1)

    with pytest.raises(RunOpen):
        await other.flush()
    assert not other.is_open(R1)


@shared
async def test_a_producer_detects_at_its_next_renewal_that_its_run_was_closed(brokers: Brokers) -> None:
    producer = brokers.make(lease=Lease(renew=timedelta(milliseconds=20)))
    other = brokers.make()
    producer.open_run(R1)
    await publish(producer, 1)
    other.close_run(R1)
    await other.flush()
    other.open_run(R1)
    await other.flush()

    await until(lambda: not producer.is_open(R1))

    with pytest.raises(RunClosed):
        await producer.publish(R1, make_event())
    producer.close_run(R1)
    await producer.flush()
    assert await other.is_open_remote(R1) and await other.publish(R1, make_event()) == 2

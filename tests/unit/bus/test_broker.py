"""A broker's task: when it starts, in which order it executes, and how it ends."""

import asyncio
import gc
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from functools import partial
from operator import itemgetter
from pathlib import Path

import anyio
import pytest

from tape.broker import BrokerEventSink, InProcessEventBroker, JournalBroker, RedisStreamsBroker, RunId, make_broker
from tape.bus.append import Appender
from tape.bus.broker import Broker
from tape.bus.broker_task import Backend
from tape.bus.feed import Feed
from tape.bus.journal import Journal
from tape.bus.operations import QUEUE_BYTES
from tape.bus.tail import Tail
from tape.compose import open_store
from tape.core.background import background
from tape.core.errors import LimitReached, RunClosed, Unavailable, UsageError
from tape.core.event import Event
from tape.core.ids import GlobalSeq
from tape.core.lease import Lease
from tape.core.ports import AppendOutcome
from tape.core.sequence import AppendRequest
from tests.deadlines import DEADLINE_S

R1 = RunId("r1")


def make_event(n: int = 0) -> Event:
    return Event(run_id=R1, payload={"n": n})


async def seqs(broker: Broker) -> list[int]:
    with anyio.fail_after(DEADLINE_S):
        return [envelope.seq async for envelope in broker.stream(R1)]


def broker_tasks() -> list[str]:
    return [task.get_name() for task in asyncio.all_tasks() if task.get_name() == "tape.broker"]


def test_operations_before_the_event_loop_are_executed_in_it() -> None:
    broker = InProcessEventBroker()
    broker.open_run(R1)
    receipt = broker.emit(R1, make_event())
    broker.close_run(R1)

    assert asyncio.run(seqs(broker)) == [1]
    assert receipt.result() == 1


def test_an_event_loop_ends_silently_under_a_broker() -> None:
    program = """if True:
        import asyncio, threading
        from tape import Event
        from tape.broker import InProcessEventBroker

        async def main():
            asyncio.get_running_loop().slow_callback_duration = 60  # a busy machine is slow, not wrong
            broker = InProcessEventBroker()
            broker.open_run("r1")
            await broker.publish("r1", Event(run_id="r1", payload=1))
            stream = broker.stream("r1")
            await anext(stream)
            broker.emit("r1", Event(run_id="r1", payload=2))

        asyncio.run(main())
        print([thread.name for thread in threading.enumerate() if "tape" in thread.name])
    """
    ended = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", program], capture_output=True, text=True, timeout=DEADLINE_S
    )

    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "[]\n", "")


def test_a_durable_run_continues_in_a_second_loop(tmp_path: Path) -> None:
    broker = JournalBroker(f"sqlite:///{tmp_path / 'tape.db'}")
    broker.open_run(R1)

    assert asyncio.run(broker.publish(R1, make_event())) == 1
    assert asyncio.run(broker.publish(R1, make_event())) == 2
    assert broker.is_open(R1)


def test_a_run_in_memory_is_closed_in_a_second_loop() -> None:
    broker = InProcessEventBroker()
    broker.open_run(R1)
    asyncio.run(broker.publish(R1, make_event()))

    assert not broker.is_open(R1)
    with pytest.raises(RunClosed):
        asyncio.run(broker.publish(R1, make_event()))
    broker.open_run(R1)
    assert asyncio.run(broker.publish(R1, make_event())) == 1


async def test_a_broker_that_runs_in_one_loop_refuses_another() -> None:
    async with InProcessEventBroker() as broker:
        with pytest.raises(UsageError, match="another event loop"):
            await anyio.to_thread.run_sync(partial(asyncio.run, broker.live_runs()))


async def test_a_broker_has_one_task_and_none_after_the_end() -> None:
    broker = InProcessEventBroker()
    assert broker_tasks() == []

    broker.open_run(R1)
    for n in range(10):
        await broker.publish(R1, make_event(n))
    assert broker_tasks() == ["tape.broker"]

    await broker.aclose()
    assert broker_tasks() == []


async def test_a_dropped_broker_executes_its_queue_and_leaves_no_task(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'tape.db'}"
    broker = JournalBroker(url)
    broker.open_run(R1)
    receipt = broker.emit(R1, make_event())
    broker.close_run(R1)

    del broker
    gc.collect()

    await until(lambda: broker_tasks() == [])
    assert receipt.result() == 1
    async with JournalBroker(url) as other:
        assert await seqs(other) == [1]


async def test_leaving_the_block_executes_the_queue(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'tape.db'}"
    async with JournalBroker(url) as broker:
        broker.open_run(R1)
        receipts = [broker.emit(R1, make_event(n)) for n in range(100)]
        broker.close_run(R1)

    assert receipts[-1].result() == 100
    async with JournalBroker(url) as broker:
        assert len(await seqs(broker)) == 100


async def test_the_block_raises_a_failure_that_nobody_retrieved() -> None:
    with pytest.raises(RuntimeError, match="not open"):
        async with InProcessEventBroker() as broker:
            broker.emit(R1, make_event())


async def test_the_blocks_own_error_is_not_hidden_by_a_failure() -> None:
    with pytest.raises(ZeroDivisionError):
        async with InProcessEventBroker() as broker:
            broker.emit(R1, make_event())
            _ = 1 / 0


async def test_a_sink_with_a_loop_starts_the_broker() -> None:
    broker = InProcessEventBroker()
    loop = asyncio.get_running_loop()

    def produce() -> int:
        broker.open_run(R1)
        return BrokerEventSink(broker, R1, loop).emit(make_event()).result(DEADLINE_S)

    assert await anyio.to_thread.run_sync(produce) == 1
    await broker.aclose()


async def test_a_threads_events_are_stored_in_order() -> None:
    async with InProcessEventBroker() as broker:
        broker.open_run(R1)
        async with anyio.create_task_group() as tasks:
            for name in "abcd":
                tasks.start_soon(anyio.to_thread.run_sync, emit_numbered, broker, name)
        broker.close_run(R1)

        found = [(envelope.event.type, envelope.event.schema_version) async for envelope in broker.stream(R1)]

    assert sorted(found, key=itemgetter(0)) == [(name, n) for name in "abcd" for n in range(1, 201)]


def emit_numbered(broker: Broker, name: str) -> None:
    for n in range(1, 201):
        broker.emit(R1, Event(run_id=R1, payload=None, type=name, schema_version=n))


async def test_events_beyond_the_appenders_queue_wait() -> None:
    event = make_event()
    async with InProcessEventBroker(max_events=10) as broker:
        broker.open_run(R1)

        receipts = [broker.emit(R1, event) for _ in range(25_000)]
        await broker.flush()

    assert receipts[-1].result() == 25_000


def test_events_beyond_the_brokers_queue_are_refused_by_emit() -> None:
    event = Event(run_id=R1, payload="x" * (1 << 19))
    broker = InProcessEventBroker()
    broker.open_run(R1)
    for _ in range(QUEUE_BYTES >> 19):
        broker.emit(R1, event)

    with pytest.raises(LimitReached):
        broker.emit(R1, event)


async def test_a_store_that_cannot_be_opened_fails_the_call_and_the_next_call_retries() -> None:
    attempts = iter([Unavailable("the server is down")])

    @asynccontextmanager
    async def connect() -> AsyncIterator[Backend]:
        for failure in attempts:
            raise failure
        async with standing() as (backend, _, _):
            yield backend

    async with aclosing(Broker(connect)) as broker:
        broker.open_run(R1)
        with pytest.raises(Unavailable, match="the server is down"):
            await broker.publish(R1, make_event(1))

        assert await broker.publish(R1, make_event(2)) == 1


async def test_events_emitted_in_one_tick_share_commits() -> None:
    async with standing() as (backend, counting, _), aclosing(Broker(lambda: lent(backend))) as broker:
        broker.open_run(R1)
        await broker.flush()

        for n in range(500):
            broker.emit(R1, make_event(n))
        await broker.flush()

        assert counting.calls == [500]


async def test_concurrent_publishes_share_commits() -> None:
    async with standing() as (backend, counting, _), aclosing(Broker(lambda: lent(backend))) as broker:
        broker.open_run(R1)
        await broker.flush()

        async with anyio.create_task_group() as tasks:
            for n in range(500):
                tasks.start_soon(broker.publish, R1, make_event(n))

        assert sum(counting.calls) == 500 and len(counting.calls) <= 2


async def test_a_cancelled_reader_leaves_no_view_in_the_tail() -> None:
    async with standing() as (backend, _, tail), aclosing(Broker(lambda: lent(backend))) as broker:
        broker.open_run(R1)
        for n in range(50):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(seqs, broker)
                await until(lambda: tail.run_ids == [R1])
                await broker.publish(R1, make_event(n))
                tasks.cancel_scope.cancel()

            assert tail.run_ids == []


def test_a_lease_is_renewed_before_it_is_gone() -> None:
    lease = Lease()

    assert lease.renew.total_seconds() == 2 and lease.gone.total_seconds() == 66
    with pytest.raises(UsageError, match="a lease is renewed before it is gone"):
        Lease(renew=lease.gone, gone=lease.renew)


@pytest.mark.parametrize("max_events", [0, -1, 1_000_001])
def test_a_run_keeps_1_to_a_million_events(max_events: int) -> None:
    with pytest.raises(ValueError, match="1 to 1,000,000"):
        InProcessEventBroker(max_events=max_events)


def test_a_bad_url_raises_when_the_broker_is_created() -> None:
    with pytest.raises(UsageError):
        JournalBroker("oracle://here")


@pytest.mark.parametrize(
    ("backend", "kind"),
    [("inprocess", InProcessEventBroker), ("redis", RedisStreamsBroker), ("journal", JournalBroker)],
)
def test_the_environment_selects_the_broker(monkeypatch: pytest.MonkeyPatch, backend: str, kind: type[Broker]) -> None:
    monkeypatch.setenv("TAPE_BROKER_BACKEND", backend)

    assert type(make_broker()) is kind


class Counting:
    """A journal that counts the events of each call."""

    def __init__(self, append: Callable[[Sequence[AppendRequest]], Awaitable[Sequence[AppendOutcome]]]) -> None:
        self._append = append
        self.calls: list[int] = []

    async def append(self, requests: Sequence[AppendRequest]) -> Sequence[AppendOutcome]:
        self.calls.append(len(requests))
        return await self._append(requests)

    async def wait(self, beyond: GlobalSeq) -> None:
        await anyio.sleep_forever()


@asynccontextmanager
async def standing() -> AsyncIterator[tuple[Backend, Counting, Tail]]:
    """A store in memory with its journal, the calls it gets, and the tail."""
    async with open_store("memory://") as store:
        tail = Tail(GlobalSeq(0))
        feed = Feed(store, tail)
        counting = Counting(store.journal.append)
        appender = Appender(counting, feed.on_appended)  # type: ignore[arg-type]
        async with background(appender.run, feed.run):
            yield Backend(store, Journal(store, tail, appender)), counting, tail


@asynccontextmanager
async def lent(backend: Backend) -> AsyncIterator[Backend]:
    yield backend


async def until(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(DEADLINE_S):
        while True:
            if condition():
                return
            await anyio.sleep(0.005)

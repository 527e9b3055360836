"""Replays: a producer gets back-pressure, is stopped when its run ends, and waits for its turn."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from threading import Event as Flag, Lock
from typing import Any

import anyio
import pytest
from anyio import to_thread

from tape.bus.journal import Journal
from tape.compose import open_store, run_journal
from tape.core.background import background
from tape.core.codec import JsonValue
from tape.core.errors import LimitReached, RunClosed, Unavailable, UsageError
from tape.core.event import Entry, Event
from tape.core.ids import RunId, Seq
from tape.core.lease import Lease
from tape.core.ports import Store
from tape.core.producer import Producer
from tape.core.run import RunRecord
from tape.runs.forks import MAX_CONCURRENT, MAX_REPLAYS, Forks, ForkSpec, open_forks
from tape.runs.producers import Producers
from tape.runs.sink import MAX_PENDING, RunSink
from tests.deadlines import DEADLINE_S

PARENT = RunId("parent")
BRISK = Lease(renew=timedelta(milliseconds=20))


class Room:
    """A journal with a parent, and forks whose producer waits for its flag."""

    def __init__(self, store: Store, journal: Journal, forks: Forks, parent: RunRecord, crowd: "Crowd") -> None:
        self.store = store
        self.journal = journal
        self.forks = forks
        self.parent = parent
        self.crowd = crowd

    async def fork(self, producer: str = "waits", mutation: JsonValue = None) -> RunId:
        return await self.forks.fork(self.parent, ForkSpec(at_seq=1, producer=producer, mutation=mutation))

    async def found(self, run_id: RunId) -> RunRecord:
        record = await self.store.runs.find(run_id)
        assert record is not None
        return record


class Crowd:
    """Producers that have begun, and wait until they are let go."""

    def __init__(self) -> None:
        self.flag = Flag()
        self.most = 0
        self._now = 0
        self._lock = Lock()

    def __call__(self, prefix: Sequence[Entry], mutation: JsonValue, n_turns: int, sink: Any, /) -> None:
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
        self.flag.wait(DEADLINE_S)
        with self._lock:
            self._now -= 1


@asynccontextmanager
async def opened() -> AsyncIterator[Room]:
    crowd = Crowd()
    async with open_store("memory://") as store, run_journal(store) as journal:
        await journal.append(Event(run_id=PARENT, payload=1), open=True)
        parent = await store.runs.find(PARENT)
        assert parent is not None
        try:
            async with open_forks(journal, producers(crowd), lease=BRISK) as forks:
                with anyio.fail_after(DEADLINE_S):
                    yield Room(store, journal, forks, parent, crowd)
        finally:
            crowd.flag.set()


def producers(crowd: Crowd) -> Producers:
    return Producers(
        [
            Producer("waits", crowd, check=refuse_all_but_wind),
            Producer("confused", confuse),
            Producer("hasty", fail_hastily),
            Producer("speechless", fall_silent),
        ]
    )


def event(number: int = 0, size: int = 0, run_id: str = PARENT) -> Event:
    return Event(run_id=run_id, payload={"number": number, "text": "x" * size})


async def test_a_producer_that_is_ahead_waits_until_its_events_are_stored() -> None:
    async with opened() as room, anyio.create_task_group() as tasks:
        sink = RunSink(room.journal, PARENT, lambda count: None)
        receipts: list[Any] = []
        tasks.start_soon(to_thread.run_sync, partial(emit, sink, receipts, MAX_PENDING + 10))
        await until(lambda: len(receipts) == MAX_PENDING)
        assert not receipts[-1].done()

        async with background(sink.run):
            await until(lambda: len(receipts) == MAX_PENDING + 10)
            await sink.drain()

    assert [receipt.result() for receipt in receipts] == [*range(2, MAX_PENDING + 12)]


async def test_what_waits_always_fits_into_one_request() -> None:
    async with opened() as room, anyio.create_task_group() as tasks:
        sink = RunSink(room.journal, PARENT, lambda count: None)
        receipts: list[Any] = []
        tasks.start_soon(to_thread.run_sync, partial(emit, sink, receipts, 20, 1_000_000))
        await until(lambda: len(receipts) == 8)

        async with background(sink.run):
            await until(lambda: len(receipts) == 20)
            await sink.drain()

    assert [receipt.result() for receipt in receipts] == [*range(2, 22)]


async def test_emit_raises_in_a_waiting_producer_when_its_run_has_ended() -> None:
    async with opened() as room, anyio.create_task_group() as tasks:
        sink = RunSink(room.journal, PARENT, lambda count: None)
        receipts: list[Any] = []
        failures: list[Exception] = []
        tasks.start_soon(to_thread.run_sync, partial(emit, sink, receipts, MAX_PENDING + 1, 0, failures))
        await until(lambda: len(receipts) == MAX_PENDING)
        sink.end(RunClosed(PARENT))
        await until(lambda: len(failures) == 1)

    assert isinstance(failures[0], RunClosed)
    assert {type(receipt.exception()) for receipt in receipts} == {RunClosed}


async def test_emit_raises_after_an_append_was_refused() -> None:
    async with opened() as room:
        sink = RunSink(room.journal, PARENT, lambda count: None)
        await room.journal.close_run(PARENT)
        async with background(sink.run):
            receipt = await to_thread.run_sync(sink.emit, event())
            with pytest.raises(RunClosed):
                await receipt
            with pytest.raises(RunClosed):
                await sink.drain()
            with pytest.raises(RunClosed):
                sink.emit(event())


async def test_a_sink_takes_events_of_its_own_run_only() -> None:
    async with opened() as room:
        sink = RunSink(room.journal, PARENT, lambda count: None)

        with pytest.raises(UsageError, match="'other' does not match 'parent'"):
            sink.emit(event(run_id="other"))


async def test_no_more_than_so_many_play_at_once_and_the_others_wait() -> None:
    async with opened() as room:
        children = [await room.fork() for _ in range(MAX_CONCURRENT + 3)]
        await until(lambda: room.crowd.most == MAX_CONCURRENT)
        room.crowd.flag.set()
        await until_closed(room.journal, children)

    assert room.crowd.most == MAX_CONCURRENT


async def test_one_replay_too_many_is_refused_and_leaves_no_child() -> None:
    async with opened() as room:
        for _ in range(MAX_REPLAYS):
            await room.fork()

        before = await room.journal.head()
        with pytest.raises(LimitReached, match="256 replays"):
            await room.fork()

        assert await room.journal.head() == before


async def test_a_storm_of_forks_begins_no_more_replays_than_there_may_be() -> None:
    refused: list[LimitReached] = []

    async def fork(room: Room) -> None:
        try:
            await room.fork()
        except LimitReached as error:
            refused.append(error)

    async with opened() as room:
        async with anyio.create_task_group() as tasks:
            for _ in range(MAX_REPLAYS + 20):
                tasks.start_soon(fork, room)
        children = len(await room.journal.live_runs()) - 1

    assert (children, len(refused)) == (MAX_REPLAYS, 20)


async def test_a_mutation_that_its_producer_refuses_begins_no_child() -> None:
    async with opened() as room:
        before = await room.journal.head()

        with pytest.raises(UsageError, match="producer 'waits' refuses the mutation: KeyError: 'wind'"):
            await room.fork(mutation={"rain": 1})

        assert await room.journal.head() == before
        await room.fork(mutation={"wind": 1})


async def test_a_child_is_leased_to_who_replays_it_from_its_first_moment_to_its_last() -> None:
    async with opened() as room:
        child = await room.fork()
        during = await room.found(child)
        room.crowd.flag.set()
        await until_closed(room.journal, [child])
        after = await room.found(child)
        parent = await room.found(PARENT)

    assert during.silent_ms is not None
    assert (after.silent_ms, parent.silent_ms) == (None, None)


async def test_a_lease_is_renewed_while_its_producer_emits_nothing() -> None:
    async with opened() as room:
        child = await room.fork()
        async with room.store.transaction() as tx:
            await tx.fetch("UPDATE tape_runs SET renewed_at = renewed_at - 60000", {})
        await until_heard(room, child)

        assert await room.journal.close_silent(timedelta(seconds=30)) == []


async def test_a_producer_that_does_not_stop_is_abandoned_when_another_process_has_ended_its_run() -> None:
    async with opened() as room:
        child = await room.fork()
        await until(lambda: room.crowd.most == 1)

        await room.store.runs.close(child)

        replay = await room.forks.settled(child)
    assert replay is not None and replay.outcome == "closed"


async def test_an_error_without_words_ends_its_own_child_and_no_other() -> None:
    async with opened() as room:
        other = await room.fork()
        child = await room.fork("speechless")
        await until_closed(room.journal, [child])

        last, open_runs = await last_of(room.journal, child), {run.run_id for run in await room.journal.live_runs()}

    assert (last.type, last.payload) == ("failed", {"reason": "speechless: Speechless"})
    assert open_runs == {PARENT, other}


async def test_leaving_ends_every_child_also_those_that_waited_for_their_turn() -> None:
    async with opened() as room:
        children = [await room.fork() for _ in range(MAX_CONCURRENT + 3)]

        await room.forks.stop()

        open_runs = {run.run_id for run in await room.journal.live_runs()}
        endings = [(await last_of(room.journal, child)).type for child in children]
        with pytest.raises(Unavailable):
            await room.fork()
    assert open_runs == {PARENT}
    assert endings == ["cancelled"] * len(children)


async def test_a_fork_that_was_under_way_when_its_server_left_ends_as_well() -> None:
    async with opened() as room:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(room.fork)
            await anyio.lowlevel.checkpoint()
            await room.forks.stop()

        open_runs = {run.run_id for run in await room.journal.live_runs()}
        entries = await room.journal.head()
    assert (open_runs, entries) == ({PARENT}, 3)


async def test_a_replay_that_is_done_has_nothing_to_lose() -> None:
    async with opened() as room:
        child = await room.fork()
        room.crowd.flag.set()
        replay = await room.forks.settled(child)
        assert replay is not None

        replay.abandon()

    assert replay.outcome == "done"


async def test_a_cancelled_replay_is_over_although_its_producer_does_not_stop() -> None:
    async with opened() as room:
        child = await room.fork()
        await until(lambda: room.crowd.most == 1)

        last_seq = await room.forks.cancel(child, "enough")

        last = await last_of(room.journal, child)
        assert (last.seq, last.type, last.payload) == (last_seq, "cancelled", {"reason": "enough"})
        await until_closed(room.journal, [child])
        await room.forks.settled(child)


async def test_a_producer_that_met_the_end_of_another_run_has_failed() -> None:
    async with opened() as room:
        child = await room.fork("confused")
        await until_closed(room.journal, [child])
        last = await last_of(room.journal, child)

    assert last.type == "failed" and "'other' is closed" in str(last.payload)


async def test_events_emitted_before_a_producer_failed_are_kept() -> None:
    async with opened() as room:
        child = await room.fork("hasty")
        await until_closed(room.journal, [child])
        types = [entry.type async for entry in room.journal.stream(run_id=child)]

    assert types[-4:] == ["word", "word", "word", "failed"]


def fail_hastily(prefix: Sequence[Entry], mutation: JsonValue, n_turns: int, sink: Any, /) -> None:
    for _ in range(3):
        sink.emit(Event(run_id=sink.run_id, type="word", payload=1))
    raise RuntimeError("too hasty")


def confuse(prefix: Sequence[Entry], mutation: JsonValue, n_turns: int, sink: Any, /) -> None:
    raise RunClosed(RunId("other"))


class Speechless(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


def fall_silent(prefix: Sequence[Entry], mutation: JsonValue, n_turns: int, sink: Any, /) -> None:
    raise Speechless


def refuse_all_but_wind(mutation: Any) -> None:
    mutation["wind"]


def emit(
    sink: RunSink, receipts: list[Any], count: int, size: int = 0, failures: list[Exception] | None = None
) -> None:
    try:
        for number in range(count):
            receipts.append(sink.emit(event(number, size)))
    except RunClosed as error:
        if failures is None:
            raise
        failures.append(error)


async def last_of(journal: Journal, run_id: RunId) -> Entry:
    entries = [entry async for entry in journal.stream(run_id=run_id, from_seq=Seq(1), follow=False)]
    return entries[-1]


async def until_closed(journal: Journal, run_ids: Sequence[RunId]) -> None:
    """Until none of them is open: their streams end."""
    for run_id in run_ids:
        async for _ in journal.stream(run_id=run_id):
            pass


async def until_heard(room: Room, run_id: RunId) -> None:
    """Until its lease has been renewed."""
    while True:
        if ((await room.found(run_id)).silent_ms or 0) < 30_000:
            return
        await anyio.sleep(0.01)


async def until(condition: Callable[[], bool]) -> None:
    while True:
        if condition():
            return
        await anyio.sleep(0.01)

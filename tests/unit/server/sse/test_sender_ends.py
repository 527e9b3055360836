"""How an SSE stream ends: no entry is skipped, and no resource stays open."""

import asyncio
import socket

import anyio
import pytest

from tape.bus.journal import Journal
from tape.bus.selection import HistoryPage
from tape.bus.stream import StreamReader
from tape.compose import run_journal
from tape.core.errors import Unavailable
from tape.core.event import Event
from tape.core.flow import Flow
from tape.core.ids import RunId
from tape.core.ports import Store
from tape.server.sse.sender import StopReason
from tape.server.sse.sources import RunSource
from tape.wire.frames import Checkpoint, ClientEvicted, Goaway, ReplayComplete, SlowClientWarning, StreamError
from tests.contract.events import fill, make_event, upto
from tests.deadlines import DEADLINE_S
from tests.unit.server.sse.senders import LARGE, Client, ids, publish, sending

SMALL = "x"


async def warned(client: Client) -> None:
    with anyio.fail_after(DEADLINE_S):
        while not client.meters.warned.total:  # noqa: ASYNC110 - nothing tells us
            await anyio.sleep(0.01)


async def rest(client: Client) -> list[int]:
    """Reads slowly until the server has closed; returns the ids of the entries."""
    loop = asyncio.get_running_loop()
    while data := await loop.sock_recv(client.socket, 300):
        client.take(data)
        await anyio.lowlevel.checkpoint()
    return ids(client.frames)


async def end(store: Store, journal: Journal) -> None:
    """Closes the run, as another process would; every reader of it has been goaway when this returns."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_hear, journal)
        await anyio.wait_all_tasks_blocked()
        await store.runs.close(RunId("r1"))


async def _hear(journal: Journal) -> None:
    async for _ in journal.stream(run_id="r1"):
        pass


async def test_a_warned_reader_ends_with_its_run(journal: Journal, store: Store, run: RunSource) -> None:
    await fill(journal, "r1", 0)

    async with sending(run, flow=Flow(max_queued=16)) as client:
        await client.first(ReplayComplete)
        await publish(journal, 1, "y" * 200_000)
        await publish(journal, 13, SMALL)
        await warned(client)
        await end(store, journal)

        assert await client.entries(14) == upto(14)
        assert await client.stopped() is StopReason.OVER


async def test_a_reader_that_is_overtaken_while_it_is_beyond_its_cap_is_evicted(store: Store) -> None:
    async with run_journal(store, tail_entries=64) as journal:
        await fill(journal, "r1", 0)
        run = RunSource(journal, store.runs, RunId("r1"))

        async with sending(run, flow=Flow(max_queued=16)) as client:
            await client.first(ReplayComplete)
            await publish(journal, 1, "y" * 200_000)
            for _ in range(10):
                await journal.append([make_event("r1", n) for n in range(50)])

            assert await client.stopped() is StopReason.EVICTED
            assert (await client.first(ClientEvicted)).dropped_after == 1
    assert [type(frame) for frame in client.frames].count(SlowClientWarning) == 1


async def test_a_reader_that_may_lag_is_warned_and_never_evicted(journal: Journal, run: RunSource) -> None:
    await fill(journal, "r1", 0)

    async with sending(run) as client:
        await client.first(ReplayComplete)
        await publish(journal, 1, "y" * 200_000)
        await journal.append([make_event("r1", n) for n in range(1000)])
        with anyio.move_on_after(1.5):
            await client.ended.wait()
        assert (client.end, client.meters.warned.total) == (None, 1)

        assert await client.entries(1001) == upto(1001)


@pytest.mark.parametrize("count", range(14, 26))
async def test_a_half_closed_reader_gets_no_cursor_beyond_its_entries(
    journal: Journal, store: Store, count: int
) -> None:
    events = [Event(run_id="r1", payload=LARGE, subject="/a/b") for _ in range(count)]
    await journal.append(events, open=True)

    async with sending(RunSource(journal, store.runs, RunId("r1"), "/a/b")) as client:
        await anyio.wait_all_tasks_blocked()
        client.socket.shutdown(socket.SHUT_WR)
        await anyio.wait_all_tasks_blocked()
        got = await rest(client)
        assert await client.stopped() is StopReason.GONE

    cursors = [frame.id for frame in client.frames if isinstance(frame, Checkpoint)]
    assert got == upto(len(got)) and max([0, *cursors]) <= len(got)


class FailingReader:
    """A reader whose history cannot be read."""

    def __init__(self, reader: StreamReader, error: Exception) -> None:
        self._reader = reader
        self._error = error

    def __getattr__(self, name: str) -> object:
        return getattr(self._reader, name)

    async def replay(self) -> HistoryPage:
        raise self._error


class FailingRun(RunSource):
    error: Exception

    def open(self, after: int, epoch: int | None = None) -> FailingReader:  # type: ignore[override]
        return FailingReader(super().open(after, epoch), self.error)


@pytest.mark.parametrize(
    ("error", "error_text"),
    [
        (RuntimeError("SELECT * FROM secrets"), "the server failed"),
        (Unavailable("/data/runs/x.duckdb is being written"), "the store did not answer; nothing was written"),
    ],
)
async def test_a_failed_read_is_a_stream_error_without_internals(
    journal: Journal, store: Store, error: Exception, error_text: str
) -> None:
    run = FailingRun(journal, store.runs, RunId("r1"))
    run.error = error

    async with sending(run) as client:  # type: ignore[arg-type]
        assert await client.first(StreamError) == StreamError(error=error_text)
        assert await client.stopped() is StopReason.FAILED


class PausedReader:
    """A reader that holds back its pages until the test releases them."""

    def __init__(self, reader: StreamReader) -> None:
        self._reader = reader
        self.asked, self.let = anyio.Event(), anyio.Event()

    def __getattr__(self, name: str) -> object:
        return getattr(self._reader, name)

    async def replay(self) -> HistoryPage:
        page = await self._reader.replay()
        self.asked.set()
        await self.let.wait()
        return page


class HeldRun(RunSource):
    held: PausedReader

    def open(self, after: int, epoch: int | None = None) -> PausedReader:  # type: ignore[override]
        self.held = PausedReader(super().open(after, epoch))
        return self.held


async def test_a_goaway_during_the_last_page_is_sent_after_the_page(journal: Journal, store: Store) -> None:
    await fill(journal, "r1", 3)
    run = HeldRun(journal, store.runs, RunId("r1"))

    async with sending(run) as client:  # type: ignore[arg-type]
        with anyio.fail_after(DEADLINE_S):
            await run.held.asked.wait()
        client.goaway(50)
        run.held.let.set()
        goaway = await client.first(Goaway)
        assert await client.stopped() is StopReason.GOAWAY

    assert ids(client.frames) == [1, 2, 3]
    assert client.frames[-2:] == [ReplayComplete(replayed_count=3, last_event_id=3), goaway]
    assert goaway == Goaway(reconnect_after_ms=50)

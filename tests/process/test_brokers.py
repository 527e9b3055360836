"""Brokers in different processes: one journal, and liveness by renewed lease."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from datetime import timedelta
from pathlib import Path

import anyio
import pytest

from tape.broker import JournalBroker, LiveRun, RunId
from tape.compose import open_store
from tape.core.errors import RunClosed
from tape.core.event import Event
from tape.core.lease import Lease
from tape.core.ports import Store
from tape.core.run import RunActivity
from tests.deadlines import DEADLINE_S
from tests.process.processes import Processes

R1 = RunId("r1")
BRISK = Lease(renew=timedelta(milliseconds=100), gone=timedelta(seconds=1))


@pytest.fixture(params=["sqlite", "postgres", "redis"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'tape.db'}"
    return str(request.getfixturevalue(f"{request.param}_url"))


@pytest.fixture
async def broker(url: str) -> AsyncIterator[JournalBroker]:
    async with JournalBroker(url) as broker:
        yield broker


@pytest.fixture
async def watcher(url: str) -> AsyncIterator[JournalBroker]:
    """A broker that closes the runs of others after a second of silence."""
    async with JournalBroker(url, lease=BRISK) as broker:
        yield broker


async def test_what_another_process_publishes_is_read_here_dense_and_in_order(
    processes: Processes, url: str, broker: JournalBroker
) -> None:
    child = processes.start("producer", url, R1, 100, "closes", 2)
    await until_known(url)

    with anyio.fail_after(DEADLINE_S):
        seen = [(envelope.seq, envelope.event.payload) async for envelope in broker.stream(R1)]

    child.finish()
    assert seen == [(n + 1, {"n": n}) for n in range(100)]


async def test_a_run_that_another_process_has_left_open_is_listed(
    processes: Processes, url: str, broker: JournalBroker
) -> None:
    processes.start("producer", url, R1, 2, "leaves", 2).finish()

    assert await broker.live_runs() == [LiveRun(run_id=R1, label="elsewhere", started_at=None, n_events=2)]
    assert await broker.is_open_remote(R1) and not broker.is_open(R1)


async def test_a_producer_killed_hard_is_seen_stale_and_its_run_stays_open(processes: Processes, url: str) -> None:
    child = processes.start("producer", url, R1, 1, "stays", 2)
    await until_known(url)
    async with open_store(url) as store:
        before = await store.runs.find(R1)
        child.kill()

        await until(lambda: has_status(store, RunActivity.STALE), within_s=DEADLINE_S)

        assert before is not None and before.status is RunActivity.RUNNING
        after = await store.runs.find(R1)
        assert after is not None and after.head.is_open


async def test_a_run_is_open_for_as_long_as_its_producer_renews_and_closed_by_any_node_when_it_is_gone(
    processes: Processes, url: str, watcher: JournalBroker
) -> None:
    child = processes.start("producer", url, R1, 1, "stays", 0.1)
    await until_known(url)
    seen = []
    with anyio.fail_after(DEADLINE_S):
        async with aclosing(watcher.stream(R1)) as stream:
            async for envelope in stream:
                seen.append(envelope.seq)
                if envelope.seq == 10:  # at 5 a second that is longer than the silence it may keep
                    child.kill()

    assert seen == list(range(1, len(seen) + 1)) and len(seen) >= 10
    assert not await watcher.is_open_remote(R1)
    with pytest.raises(RunClosed):
        await watcher.publish(R1, Event(run_id=R1, payload=0))


@pytest.mark.usefixtures("watcher")
async def test_a_producer_that_was_paused_too_long_learns_that_its_run_is_closed(
    processes: Processes, url: str
) -> None:
    child = processes.start("producer", url, R1, 1, "stays", 0.1)
    await until_known(url)
    child.pause()
    async with open_store(url) as store:
        await until(lambda: has_status(store, RunActivity.COMPLETE))

    child.resume()

    child.finish()


async def until_known(url: str) -> None:
    """Until the run is there, with something in it."""
    async with open_store(url) as store:
        await until(lambda: has_events(store))


async def has_events(store: Store) -> bool:
    run = await store.runs.find(R1)
    return run is not None and run.head.last_seq > 0


async def has_status(store: Store, status: RunActivity) -> bool:
    run = await store.runs.find(R1)
    return run is not None and run.status is status


async def until(condition: Callable[[], Awaitable[bool]], within_s: float = DEADLINE_S) -> None:
    with anyio.fail_after(within_s):
        while True:
            if await condition():
                return
            await anyio.sleep(0.02)

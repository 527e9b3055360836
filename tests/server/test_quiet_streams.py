"""P7: an open stream always has something to say, however little happens."""

from collections.abc import AsyncIterator

import pytest

from tape.bus.journal import Journal
from tape.compose import open_store, run_journal
from tape.core.ids import RunId
from tape.core.ports import Store
from tape.server.sse import socket_writer
from tape.server.sse.socket_writer import QUIET_TICKS, TICK_S
from tape.server.sse.sources import JournalSource, RunSource
from tape.wire.frames import Checkpoint, ReplayComplete
from tape.wire.sse import COMMENT
from tests.contract.events import fill
from tests.server.senders import sending


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket_writer, "TICK_S", 0.02)


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    async with open_store("memory://") as store:
        yield store


@pytest.fixture
async def journal(store: Store) -> AsyncIterator[Journal]:
    async with run_journal(store) as journal:
        yield journal


def test_a_word_comes_every_fifteen_seconds_at_the_latest() -> None:
    assert 0 < (QUIET_TICKS + 1) * TICK_S <= 15


async def test_a_stream_on_which_nothing_happens_says_that_it_is_there(journal: Journal, store: Store) -> None:
    await fill(journal, "r1", 1)

    async with sending(RunSource(journal, store.runs, RunId("r1"))) as client:
        await client.first(ReplayComplete)
        await client.received(COMMENT, times=3)


async def test_a_filtered_stream_says_how_far_it_has_come_while_others_talk(journal: Journal) -> None:
    async with sending(JournalSource(journal, "/elsewhere/**")) as client:
        await client.first(ReplayComplete)
        await fill(journal, "r1", 700)

        await client.read(lambda frames: Checkpoint(700) in frames)


async def test_a_filtered_run_says_how_far_it_has_come_in_the_run(journal: Journal, store: Store) -> None:
    await fill(journal, "r0", 10)

    async with sending(RunSource(journal, store.runs, RunId("r1"), "/elsewhere/**")) as client:
        await client.first(ReplayComplete)
        await fill(journal, "r1", 7)

        await client.read(lambda frames: Checkpoint(7) in frames)
    assert max(frame.id for frame in client.frames if isinstance(frame, Checkpoint)) == 7

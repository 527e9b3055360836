"""P7: a quiet stream sends keepalives."""

import pytest

from tape.bus.journal import Journal
from tape.core.ids import RunId
from tape.core.ports import Store
from tape.server.sse import socket_writer
from tape.server.sse.socket_writer import QUIET_TICKS, TICK_S
from tape.server.sse.sources import JournalSource, RunSource
from tape.wire.frames import Checkpoint, ReplayComplete
from tape.wire.sse import COMMENT
from tests.contract.events import fill
from tests.unit.server.sse.senders import sending


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket_writer, "TICK_S", 0.02)


def test_a_keepalive_is_sent_at_least_every_fifteen_seconds() -> None:
    assert 0 < (QUIET_TICKS + 1) * TICK_S <= 15


async def test_a_quiet_stream_sends_comments(journal: Journal, store: Store) -> None:
    await fill(journal, "r1", 1)

    async with sending(RunSource(journal, store.runs, RunId("r1"))) as client:
        await client.first(ReplayComplete)
        await client.received(COMMENT, times=3)


async def test_a_quiet_filtered_stream_sends_its_cursor(journal: Journal) -> None:
    async with sending(JournalSource(journal, "/elsewhere/**")) as client:
        await client.first(ReplayComplete)
        await fill(journal, "r1", 700)

        await client.read(lambda frames: Checkpoint(700) in frames)


async def test_a_quiet_filtered_run_sends_its_seq(journal: Journal, store: Store) -> None:
    await fill(journal, "r0", 10)

    async with sending(RunSource(journal, store.runs, RunId("r1"), "/elsewhere/**")) as client:
        await client.first(ReplayComplete)
        await fill(journal, "r1", 7)

        await client.read(lambda frames: Checkpoint(7) in frames)
    assert max(frame.id for frame in client.frames if isinstance(frame, Checkpoint)) == 7

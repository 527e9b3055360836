"""One SSE stream: replay, live, slow readers, gaps."""

import anyio

from tape.bus.journal import Journal
from tape.core.event import Event
from tape.core.flow import Flow
from tape.core.ids import RunId
from tape.core.ports import Store
from tape.server.sse.sender import StopReason
from tape.server.sse.sources import JournalSource, RunSource
from tape.wire.frames import (
    Checkpoint,
    ClientEvicted,
    Delivered,
    ReplayComplete,
    SlowClientWarning,
    StateResyncRequired,
)
from tests.contract.events import fill, make_event, upto
from tests.unit.server.sse.senders import LARGE, ids, publish, sending


async def test_entries_after_the_cursor_are_replayed_then_replay_complete_then_live(
    journal: Journal, run: RunSource
) -> None:
    await fill(journal, "r1", 5)

    async with sending(run, after=2) as client:
        await client.first(ReplayComplete)
        await publish(journal, 1)
        frames = await client.read(lambda frames: len(ids(frames)) == 4)

    assert [getattr(frame, "id", frame) for frame in frames] == [
        3, 4, 5, ReplayComplete(replayed_count=3, last_event_id=5), 6,
    ]  # fmt: skip


async def test_a_cursor_at_the_head_gets_an_empty_replay_complete(journal: Journal, run: RunSource) -> None:
    await fill(journal, "r1", 3)

    async with sending(run, after=3) as client:
        word = await client.first(ReplayComplete)

    assert word == ReplayComplete(replayed_count=0, last_event_id=3)
    assert ids(client.frames) == []


async def test_a_stream_without_a_cursor_gets_no_replay_complete(journal: Journal, run: RunSource) -> None:
    await fill(journal, "r1", 3)

    async with sending(run, after=3, is_replayed=False) as client:
        await publish(journal, 1)
        await client.entries(1)

    assert [type(frame) for frame in client.frames] == [Delivered]


async def test_a_stream_ends_with_its_run(journal: Journal, run: RunSource) -> None:
    await fill(journal, "r1", 3)

    async with sending(run) as client:
        await client.first(ReplayComplete)
        await publish(journal, 2)
        await journal.close_run("r1")

        assert await client.entries(5) == upto(5)
        assert await client.stopped() is StopReason.OVER


async def test_a_closed_run_is_replayed_and_then_ends(journal: Journal, run: RunSource) -> None:
    await fill(journal, "r1", 300)
    await journal.close_run("r1")

    async with sending(run) as client:
        assert await client.entries(300) == upto(300)
        assert (await client.first(ReplayComplete)).replayed_count == 300
        assert await client.stopped() is StopReason.OVER


async def test_a_reader_that_reads_nothing_is_warned_once_and_evicted_with_the_last_id_it_gets(
    journal: Journal, run: RunSource
) -> None:
    await fill(journal, "r1", 0)

    async with sending(run, flow=Flow(max_queued=16)) as client:
        await publish(journal, 60)
        assert await client.stopped() is StopReason.EVICTED
        evicted = await client.first(ClientEvicted)

    warnings = [frame for frame in client.frames if isinstance(frame, SlowClientWarning)]
    assert [(word.queue_size, word.max_queued, word.threshold) for word in warnings] == [(12, 16, "frames")]
    assert evicted == ClientEvicted(reason="queue_overflow", dropped_after=ids(client.frames)[-1])
    assert ids(client.frames) == upto(len(ids(client.frames)))
    assert (client.meters.warned.total, client.meters.evicted.total) == (1, 1)


async def test_a_byte_cap_evicts_and_is_named(journal: Journal, run: RunSource) -> None:
    await fill(journal, "r1", 0)

    async with sending(run, flow=Flow(max_queued=2048, max_bytes=20_000)) as client:
        await publish(journal, 60)
        assert await client.stopped() is StopReason.EVICTED
        evicted = await client.first(ClientEvicted)

    warnings = [frame.threshold for frame in client.frames if isinstance(frame, SlowClientWarning)]
    assert (warnings, evicted.reason) == (["bytes"], "queue_bytes_overflow")


async def test_a_single_entry_over_the_byte_cap_is_delivered(journal: Journal, run: RunSource) -> None:
    await fill(journal, "r1", 0)

    async with sending(run, flow=Flow(max_queued=16, max_bytes=1000)) as client:
        await publish(journal, 1, "y" * 100_000)

        assert await client.entries(1) == [1]
        assert client.meters.evicted.total == 0


async def test_a_burst_far_over_the_cap_does_not_evict_a_reader_that_reads(journal: Journal, run: RunSource) -> None:
    await fill(journal, "r1", 0)

    async with sending(run, flow=Flow(max_queued=16)) as client:
        await client.first(ReplayComplete)
        await journal.append([make_event("r1", n) for n in range(1, 1001)])

        assert await client.entries(1000) == upto(1000)
        assert client.meters.evicted.total == 0


async def test_replayed_entries_do_not_count_toward_the_caps(journal: Journal, run: RunSource) -> None:
    for _ in range(3):
        await journal.append([Event(run_id="r1", payload=LARGE) for _ in range(100)], open=True)

    async with sending(run, flow=Flow(max_queued=16)) as client:
        with anyio.move_on_after(1.5):
            await client.ended.wait()
        assert client.end is None

        assert await client.entries(300) == upto(300)
        assert client.meters.warned.total == 0


async def test_a_reader_that_recovers_can_be_warned_again(journal: Journal, run: RunSource) -> None:
    await fill(journal, "r1", 0)

    async with sending(run, flow=Flow(max_queued=40)) as client:
        for total in (36, 72):
            await publish(journal, 36)
            await client.entries(total)

    warnings = [frame for frame in client.frames if isinstance(frame, SlowClientWarning)]
    assert len(warnings) == 2
    assert client.meters.evicted.total == 0


async def test_a_reader_that_may_lag_gets_everything_however_slow(journal: Journal, run: RunSource) -> None:
    await fill(journal, "r1", 0)

    async with sending(run) as client:
        await client.first(ReplayComplete)
        for _ in range(9):
            await journal.append([make_event("r1", n) for n in range(1000)])

        assert await client.entries(9000) == upto(9000)
        assert client.meters.evicted.total == 0


async def test_a_reader_of_a_gap_gets_a_resync_and_the_stream_stays_open(
    journal: Journal, store: Store, run: RunSource
) -> None:
    await fill(journal, "r1", 5)
    await store.retention.trim_run(RunId("r1"), 3)

    async with sending(run, after=1) as client:
        await client.first(ReplayComplete)
        await publish(journal, 1)
        await client.entries(4)

    word = StateResyncRequired(reason="ring_evicted", last_delivered_id=1, earliest_available_id=3)
    assert client.frames[0] == word
    assert ids(client.frames) == [3, 4, 5, 6]
    assert ReplayComplete(replayed_count=3, last_event_id=5) in client.frames


async def test_a_cursor_just_below_the_floor_needs_no_resync(journal: Journal, store: Store, run: RunSource) -> None:
    await fill(journal, "r1", 5)
    await store.retention.trim_run(RunId("r1"), 3)

    async with sending(run, after=2) as client:
        await client.first(ReplayComplete)

    assert ids(client.frames) == [3, 4, 5]
    assert client.meters.resynced.total == 0


async def test_a_cursor_beyond_the_head_is_an_epoch_reset_and_all_is_replayed(journal: Journal, run: RunSource) -> None:
    await fill(journal, "r1", 3)

    async with sending(run, after=50) as client:
        await client.first(ReplayComplete)

    assert client.frames[0] == StateResyncRequired(reason="epoch_reset", last_delivered_id=50, earliest_available_id=1)
    assert ids(client.frames) == [1, 2, 3]


async def test_an_empty_run_and_a_cursor_start_over_at_one(journal: Journal, run: RunSource) -> None:
    await journal.open_run("r1")

    async with sending(run, after=5) as client:
        assert await client.first(ReplayComplete) == ReplayComplete(replayed_count=0, last_event_id=0)
        await publish(journal, 1)

        assert await client.entries(1) == [1]
    assert client.frames[0] == StateResyncRequired(reason="epoch_reset", last_delivered_id=5, earliest_available_id=1)


async def test_across_runs_a_cursor_of_another_journal_resumes_at_the_head(journal: Journal) -> None:
    await fill(journal, "r1", 3)

    async with sending(JournalSource(journal), after=50) as client:
        await client.first(ReplayComplete)
        await publish(journal, 1)

        assert await client.entries(1) == [4]
    assert client.frames[0] == StateResyncRequired(reason="epoch_reset", last_delivered_id=50, earliest_available_id=4)


async def test_a_filtered_stream_sends_its_cursor_without_an_entry(journal: Journal) -> None:
    await fill(journal, "r1", 700)

    async with sending(JournalSource(journal, "/elsewhere/**")) as client:
        await client.first(ReplayComplete)
        frames = await client.read(lambda frames: any(isinstance(frame, Checkpoint) for frame in frames))

    assert Checkpoint(700) in frames


async def test_p6_no_checkpoint_is_beyond_an_entry_that_follows_it(journal: Journal) -> None:
    await fill(journal, "r1", 700)

    async with sending(JournalSource(journal, where="payload.n > 690")) as client:
        await client.entries(10)

    places = [frame.id for frame in client.frames if isinstance(frame, Checkpoint | Delivered)]
    assert places == sorted(places) and len(places) == len(set(places)) > 10


async def test_a_client_that_leaves_ends_its_stream(journal: Journal, run: RunSource) -> None:
    await fill(journal, "r1", 1)

    async with sending(run) as client:
        await client.first(ReplayComplete)
        client.socket.close()

        assert await client.stopped() is StopReason.GONE

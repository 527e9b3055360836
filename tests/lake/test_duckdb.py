"""DuckDB beside a broker: a reader like any other, whose file is read back without the journal."""

import hashlib
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import anyio
import duckdb
import pytest

from tape.broker import InProcessEventBroker
from tape.bus.journal import Journal
from tape.compose import open_journal
from tape.core.envelope import EventEnvelope
from tape.core.errors import BrokerOverflowError, Conflict, InvalidCursor, NotFound, Unavailable, UsageError
from tape.core.event import Entry, Event, Trace
from tape.core.ids import Epoch, RunId, Seq
from tape.core.run import RunMeta
from tape.lake import DuckDBEventSink, persist_to_duckdb, stream_cold
from tape.lake.cold.persist import persist_entries
from tape.lake.cold.reading import read_cold, read_runs
from tape.lake.cold.runs import ColdRuns, cold_path
from tape.lake.file_lock import exclusive_lock, is_locked
from tape.runs.cold_runs import ColdHistory, ColdRuns as ColdRunRecords
from tests.deadlines import DEADLINE_S

RUN = RunId("r")
HOSTILE: list[object] = [
    None,
    "",
    "\n\ndata: x\r\nid: 7\r\n\r\n",
    "'; DROP TABLE events; --",
    "\u2028\u2029\ufeff\x01\x7f\U0010ffff☃",
    {"": {"\\": '"', "${x}": "%s ? $1"}},
    [-(2**63), 2**63 - 1, 1e-320, -0.0, 1.5e300, True],
    [[[[[]]]]],
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cold.duckdb"


@pytest.fixture
async def broker() -> AsyncIterator[InProcessEventBroker]:
    async with InProcessEventBroker() as broker:
        yield broker


@pytest.fixture
async def journal() -> AsyncIterator[Journal]:
    async with open_journal("memory://") as journal:
        yield journal


async def publish(broker: InProcessEventBroker, count: int, run_id: RunId = RUN) -> list[EventEnvelope]:
    """Publishes numbers; what a reader of the run should see of them."""
    events = [Event(run_id=run_id, payload={"n": n}) for n in range(count)]
    return [EventEnvelope(run_id, await broker.publish(run_id, event), event) for event in events]


async def persist(journal: Journal, path: Path, run_id: RunId = RUN) -> None:
    await persist_entries(lambda seq: journal.stream(run_id=run_id, from_seq=seq), run_id, path)


async def entries(journal: Journal, run_id: RunId = RUN) -> list[Entry]:
    return [entry async for entry in journal.stream(run_id=run_id, follow=False)]


async def test_a_persister_started_late_stores_every_event(broker: InProcessEventBroker, path: Path) -> None:
    broker.open_run(RUN)
    published = await publish(broker, 50)
    broker.close_run(RUN)

    await persist_to_duckdb(broker, RUN, path)

    assert list(stream_cold(path, RUN)) == published


async def test_a_persister_ends_with_the_run(broker: InProcessEventBroker, path: Path) -> None:
    broker.open_run(RUN)
    with anyio.fail_after(DEADLINE_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(persist_to_duckdb, broker, RUN, path)
            published = await publish(broker, 500)
            await until_locked(path)
            broker.close_run(RUN)

    assert list(stream_cold(path, RUN)) == published and not is_locked(path)


async def test_an_idle_persister_closes_its_file_and_still_owns_it(
    broker: InProcessEventBroker, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tape.lake.cold.persist.IDLE_S", 0.01)
    broker.open_run(RUN)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(persist_to_duckdb, broker, RUN, path)
        published = await publish(broker, 3)
        await until_closed(path)
        assert is_locked(path)
        published += await publish(broker, 3)
        broker.close_run(RUN)

    assert list(stream_cold(path, RUN)) == published


async def test_a_run_without_an_entry_has_no_file_until_it_ends(journal: Journal, path: Path) -> None:
    reading = anyio.Event()

    def read(seq: Seq) -> AsyncIterator[Entry]:
        reading.set()
        return journal.stream(run_id=RUN, from_seq=seq)

    await journal.open_run(RUN)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(persist_entries, read, RUN, path)
        await reading.wait()
        has_file = path.exists()
        await journal.close_run(RUN)

    [run] = read_runs(path)
    assert (has_file, run.n_events, run.is_complete) == (False, 0, True)


async def test_a_burst_is_written_whole(journal: Journal, path: Path) -> None:
    await journal.open_run(RUN)
    for _ in range(9):
        await journal.append([Event(run_id=RUN, payload={"text": "x" * 200})] * 1_000)
    await journal.close_run(RUN)

    await persist(journal, path)

    assert list(read_cold(path, RUN)) == await entries(journal)


@pytest.mark.parametrize("payload", HOSTILE, ids=range(len(HOSTILE)))
async def test_no_payload_comes_back_changed(payload: object, journal: Journal, path: Path) -> None:
    event = Event(
        run_id=RUN, payload=payload, type="A.b-c", subject="/shop/Order%20%2A/x", schema_version=32767, event_id="e-1",  # type: ignore[arg-type]
        trace=Trace("a" * 32, "b" * 16, "c" * 16), attributes={"client_id": "☃ ' \" \\"},
    )  # fmt: skip
    await journal.append(event, open=True)
    await journal.append(Event(run_id=RUN, payload=payload, cause=1))  # type: ignore[arg-type]
    await journal.close_run(RUN)

    await persist(journal, path)

    assert list(map(repr, read_cold(path, RUN))) == list(map(repr, await entries(journal)))
    assert next(stream_cold(path, RUN)) == EventEnvelope(RUN, Seq(1), event)


async def test_bytes_come_back_as_bytes(journal: Journal, path: Path) -> None:
    event = Event(run_id=RUN, payload=bytes(range(256)), content_type="application/x-any")
    await journal.append(event, open=True)
    await journal.close_run(RUN)

    await persist(journal, path)

    assert [envelope.event for envelope in stream_cold(path, RUN)] == [event]
    assert list(read_cold(path, RUN)) == await entries(journal)


async def test_payloads_of_a_mebibyte_are_written_and_read_in_bounded_batches(journal: Journal, path: Path) -> None:
    await journal.open_run(RUN)
    for letter in "abcdefghijklmnopqrst":
        await journal.append(Event(run_id=RUN, payload=letter * ((1 << 20) - 2)))
    await journal.close_run(RUN)

    await persist(journal, path)

    assert list(read_cold(path, RUN)) == await entries(journal)


async def test_what_a_fork_inherits_is_read_under_its_own_id_and_stays_what_it_was(path: Path) -> None:
    published = [Event(run_id=run_id, payload=1) for run_id in ("parent", "parent", RUN)]
    entries_given = [event.at(7 * n, n, 1_700_000_000_000, 0, Epoch(1)) for n, event in enumerate(published, 1)]

    async def read(seq: Seq) -> AsyncIterator[Entry]:
        for entry in entries_given[seq - 1 :]:
            yield entry

    await persist_entries(read, RUN, path)

    assert list(read_cold(path, RUN)) == entries_given
    assert [(e.run_id, e.seq, e.event.run_id) for e in stream_cold(path, RUN)] == [
        (RUN, 1, "parent"), (RUN, 2, "parent"), (RUN, 3, RUN)
    ]  # fmt: skip


async def test_two_runs_share_a_file_and_keep_their_numbers(broker: InProcessEventBroker, path: Path) -> None:
    other = RunId("other")
    broker.open_run(RUN)
    broker.open_run(other)
    published, published_there = await publish(broker, 3), await publish(broker, 5, other)
    broker.close_run(RUN)
    broker.close_run(other)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(persist_to_duckdb, broker, RUN, path)
        tasks.start_soon(persist_to_duckdb, broker, other, path)

    assert (list(stream_cold(path, RUN)), list(stream_cold(path, other))) == (published, published_there)


async def test_a_cold_run_is_read_from_any_seq(broker: InProcessEventBroker, path: Path) -> None:
    broker.open_run(RUN)
    published = await publish(broker, 5)
    broker.close_run(RUN)
    await persist_to_duckdb(broker, RUN, path)

    assert list(stream_cold(path, RUN, 0)) == published
    assert list(stream_cold(path, RUN, 4)) == published[3:]
    assert list(stream_cold(path, RUN, 6)) == []
    with pytest.raises(InvalidCursor):
        list(stream_cold(path, RUN, -1))


async def test_a_restarted_persister_continues_without_duplicates(broker: InProcessEventBroker, path: Path) -> None:
    broker.open_run(RUN)
    published = await publish(broker, 10)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(persist_to_duckdb, broker, RUN, path)
        await until_locked(path)
        tasks.cancel_scope.cancel()
    published += await publish(broker, 10)
    broker.close_run(RUN)

    await persist_to_duckdb(broker, RUN, path)
    await persist_to_duckdb(broker, RUN, path)

    assert list(stream_cold(path, RUN)) == published


async def test_what_was_gone_is_a_gap_in_the_file_too(path: Path) -> None:
    async with InProcessEventBroker(max_events=3) as broker:
        broker.open_run(RUN)
        published = await publish(broker, 10)
        broker.close_run(RUN)
        await persist_to_duckdb(broker, RUN, path)

    with pytest.raises(BrokerOverflowError) as gap:
        list(stream_cold(path, RUN))
    assert (gap.value.run_id, gap.value.requested_seq, gap.value.available_from) == (RUN, 1, 8)
    assert list(stream_cold(path, RUN, 8)) == published[7:]
    assert [(run.is_complete, run.is_whole) for run in read_runs(path)] == [(True, False)]


async def test_a_gap_in_the_middle_ends_the_reading_before_it(path: Path) -> None:
    async with InProcessEventBroker(max_events=3) as broker:
        broker.open_run(RUN)
        published = await publish(broker, 2)
        await persisted_so_far(broker, path, 2)
        published += await publish(broker, 8)
        broker.close_run(RUN)
        await persist_to_duckdb(broker, RUN, path)

    cold = stream_cold(path, RUN)

    assert [next(cold), next(cold)] == published[:2]
    with pytest.raises(BrokerOverflowError, match="3 to 7 are gone"):
        next(cold)
    assert list(stream_cold(path, RUN, 8)) == published[7:]


async def test_a_gap_up_to_the_end_is_noted(path: Path) -> None:
    async with open_journal("memory://") as journal:
        await journal.append([Event(run_id=RUN, payload=n) for n in range(3)], open=True)
        await journal.close_run(RUN)
        await journal.reap(RUN)
        await persist(journal, path)

    with pytest.raises(BrokerOverflowError, match="1 to 3 are gone"):
        list(read_cold(path, RUN))
    assert list(read_cold(path, RUN, 4)) == []
    assert [(run.last_seq, run.is_complete, run.is_whole) for run in read_runs(path)] == [(3, True, False)]


async def test_a_run_without_events_is_complete(journal: Journal, path: Path) -> None:
    await journal.open_run(RUN)
    await journal.close_run(RUN)

    await persist(journal, path)

    assert list(read_cold(path, RUN)) == []
    assert [(run.n_events, run.is_complete, run.is_whole, run.epoch) for run in read_runs(path)] == [
        (0, True, True, None)
    ]


async def test_a_run_that_shows_nothing_is_not_called_complete(broker: InProcessEventBroker, path: Path) -> None:
    broker.open_run(RUN)
    await publish(broker, 2)
    await persisted_so_far(broker, path, 2)
    await publish(broker, 2)
    broker.close_run(RUN)
    broker.reap(RUN)

    await persist_to_duckdb(broker, RUN, path)

    assert [(run.last_seq, run.is_complete) for run in read_runs(path)] == [(2, False)]


async def test_another_journals_run_is_never_mixed_in(path: Path) -> None:
    for count in (3, 5):
        async with open_journal("memory://") as journal:
            await journal.append([Event(run_id=RUN, payload=n) for n in range(count)], open=True)
            await journal.close_run(RUN)
            if count == 3:
                await persist(journal, path)
            else:
                with pytest.raises(Conflict, match="another journal"):
                    await persist(journal, path)

    assert [entry.payload for entry in read_cold(path, RUN)] == [0, 1, 2]


async def test_a_shorter_run_of_another_journal_is_not_mixed_in_either(path: Path) -> None:
    async with InProcessEventBroker() as broker:
        broker.open_run(RUN)
        await publish(broker, 3)
        broker.close_run(RUN)
        await persist_to_duckdb(broker, RUN, path)
    async with InProcessEventBroker() as broker:
        broker.open_run(RUN)
        await publish(broker, 1)
        broker.close_run(RUN)

        with pytest.raises(Conflict, match="another journal"):
            await persist_to_duckdb(broker, RUN, path)


async def test_a_file_with_a_writer_is_known_as_owned_and_not_read(broker: InProcessEventBroker, path: Path) -> None:
    broker.open_run(RUN)
    await publish(broker, 3)
    assert not is_locked(path)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(persist_to_duckdb, broker, RUN, path)
        await until_locked(path)
        with pytest.raises(Unavailable, match="is being written"):
            next(stream_cold(path, RUN))
        broker.close_run(RUN)

    assert not is_locked(path)
    assert len(list(stream_cold(path, RUN))) == 3


async def test_a_second_writer_waits_for_the_first(broker: InProcessEventBroker, path: Path) -> None:
    broker.open_run(RUN)
    published = await publish(broker, 3)
    broker.close_run(RUN)

    async with anyio.create_task_group() as tasks, exclusive_lock(path):
        tasks.start_soon(persist_to_duckdb, broker, RUN, path)
        await anyio.wait_all_tasks_blocked()
        assert not path.exists()

    assert list(stream_cold(path, RUN)) == published


async def test_a_reader_that_pauses_keeps_no_writer_waiting(broker: InProcessEventBroker, path: Path) -> None:
    broker.open_run(RUN)
    published = await publish(broker, 3)
    await persisted_so_far(broker, path, 3)
    reader = stream_cold(path, RUN)
    assert next(reader) == published[0]

    published += await publish(broker, 1)
    broker.close_run(RUN)
    with anyio.fail_after(DEADLINE_S):
        await persist_to_duckdb(broker, RUN, path)

    assert list(reader) == published[1:]


async def test_a_file_killed_at_its_birth_is_made_again(broker: InProcessEventBroker, path: Path) -> None:
    for leftover in (".unborn", ".unborn.wal"):
        path.with_name(path.name + leftover).write_bytes(b"DUCK" * 7)
    broker.open_run(RUN)
    published = await publish(broker, 3)
    broker.close_run(RUN)

    await persist_to_duckdb(broker, RUN, path)

    assert list(stream_cold(path, RUN)) == published


async def test_a_file_that_has_other_tables_gets_ours_beside_them(journal: Journal, path: Path) -> None:
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE mine AS SELECT 1")
    await journal.append(Event(run_id=RUN, payload=1), open=True)
    await journal.close_run(RUN)

    await persist(journal, path)

    assert list(read_cold(path, RUN)) == await entries(journal)


def test_there_is_nothing_to_read_where_there_is_no_file(path: Path) -> None:
    with pytest.raises(NotFound, match="no cold file"):
        next(stream_cold(path, RUN))


async def test_envelopes_are_not_passed_off_as_entries(broker: InProcessEventBroker, path: Path) -> None:
    broker.open_run(RUN)
    await publish(broker, 1)
    broker.close_run(RUN)
    await persist_to_duckdb(broker, RUN, path)

    with pytest.raises(UsageError, match="without the journal's positions"):
        next(read_cold(path, RUN))


async def test_cold_runs_are_kept_listed_and_streamed(journal: Journal, tmp_path: Path) -> None:
    runs = ColdRuns(tmp_path)
    await journal.append([Event(run_id=RUN, payload=n) for n in range(3)], open=True)
    await journal.close_run(RUN)

    await runs.keep(RUN, lambda seq: journal.stream(run_id=RUN, from_seq=seq), RunMeta(label="first", user="ada"))

    assert runs.has(RUN) and not runs.is_being_written(RUN) and not runs.has(RunId("other"))
    assert await runs.page(RUN, Seq(2)) == (await entries(journal))[1:]
    [run] = await runs.listed()
    assert (run.run_id, run.meta, run.n_events, run.is_complete) == (RUN, RunMeta(label="first", user="ada"), 3, True)
    assert run.epoch == journal.epoch


async def test_a_reader_of_a_cold_run_waits_while_it_is_compared_with_the_journal(
    journal: Journal, tmp_path: Path
) -> None:
    runs = ColdRuns(tmp_path)
    await journal.append([Event(run_id=RUN, payload=n) for n in range(3)], open=True)
    await journal.close_run(RUN)
    await runs.keep(RUN, lambda seq: journal.stream(run_id=RUN, from_seq=seq))
    entries_read: list[Entry] = []

    async def read() -> None:
        entries_read.extend(await runs.page(RUN))

    async with anyio.create_task_group() as group, exclusive_lock(cold_path(tmp_path, RUN)):
        group.start_soon(read)
        await anyio.sleep(0.2)
        assert not entries_read

    assert entries_read == await entries(journal)


async def test_a_reader_of_a_file_that_another_journal_replaces_starts_over(tmp_path: Path) -> None:
    cold = ColdRunRecords(ColdRuns(tmp_path))
    file = None
    for _ in range(2):
        file = await cold.find(RUN)
        async with open_journal("memory://") as journal:
            await journal.append([Event(run_id=RUN, payload=n) for n in range(3)], open=True)
            await journal.close_run(RUN)
            await cold.keep(RUN, lambda seq, journal=journal: journal.stream(run_id=RUN, from_seq=seq), RunMeta())  # type: ignore[misc]

    assert file is not None and file.epoch is not None
    with closing(ColdHistory(cold, file.epoch, file.last_seq).reader(RUN, 1)) as reader, pytest.raises(InvalidCursor):
        await reader.replay()


async def test_another_journals_run_is_set_aside_by_name(tmp_path: Path) -> None:
    runs = ColdRuns(tmp_path)
    for count in (3, 2):
        async with open_journal("memory://") as journal:
            await journal.append([Event(run_id=RUN, payload=n) for n in range(count)], open=True)
            await journal.close_run(RUN)
            await runs.keep(RUN, lambda seq, journal=journal: journal.stream(run_id=RUN, from_seq=seq))  # type: ignore[misc]

    [aside] = tmp_path.rglob("*.aside")
    [old], [new] = read_runs(aside), await runs.listed()
    assert old.epoch is not None and new.epoch is not None and old.epoch < new.epoch
    assert len(list(read_cold(aside, RUN))) == 3
    assert len(list(read_cold(cold_path(tmp_path, RUN), RUN))) == 2


def test_a_run_id_is_no_part_of_a_path(tmp_path: Path) -> None:
    name = hashlib.sha256(b"a..b").hexdigest()

    assert cold_path(tmp_path, "a..b") == tmp_path / "runs" / f"{name}.duckdb"


def test_a_sink_numbers_each_run_by_itself_and_leaves_the_connection_open(path: Path) -> None:
    with duckdb.connect(path) as connection:
        places = [DuckDBEventSink(connection).emit(Event(run_id=run, payload=1)) for run in ("a", "b", "a")]
        connection.execute("SELECT 1")

    assert places == [1, 1, 2]
    assert [(run.run_id, run.n_events) for run in read_runs(path)] == [("a", 2), ("b", 1)]


def test_a_sink_keeps_given_places_all_or_none(path: Path) -> None:
    envelopes = [EventEnvelope(RUN, Seq(n), Event(run_id=RUN, payload=n)) for n in (1, 2, 3)]
    with duckdb.connect(path) as connection:
        sink = DuckDBEventSink(connection)
        sink.write(envelopes[:2])
        with pytest.raises(Conflict, match="taken"):
            sink.write(envelopes[1:])
        sink.write(envelopes[2:])

    assert list(stream_cold(path, RUN)) == envelopes


def test_what_a_sink_writes_is_the_callers_to_take_back(path: Path) -> None:
    with duckdb.connect(path) as connection:
        sink = DuckDBEventSink(connection)
        connection.begin()
        sink.emit(Event(run_id=RUN, payload="lost"))
        connection.rollback()
        assert sink.emit(Event(run_id=RUN, payload="kept")) == 1

    assert [envelope.event.payload for envelope in stream_cold(path, RUN)] == ["kept"]


async def until_closed(path: Path) -> None:
    """Until the file has been written and closed: DuckDB's log beside it is gone."""
    log = path.with_name(path.name + ".wal")
    with anyio.fail_after(DEADLINE_S):
        for is_there in (True, False):
            while log.exists() is not is_there:
                await anyio.lowlevel.checkpoint()


async def until_locked(path: Path) -> None:
    with anyio.fail_after(DEADLINE_S):
        while not (is_locked(path) and path.exists()):
            await anyio.lowlevel.checkpoint()


async def persisted_so_far(broker: InProcessEventBroker, path: Path, count: int) -> None:
    """Copies an open run up to where it is, and is cancelled there."""
    while not path.exists() or len(list(stream_cold(path, RUN))) < count:
        with anyio.move_on_after(0.2):
            await persist_to_duckdb(broker, RUN, path)

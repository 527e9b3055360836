"""Features of SQLite files: location, durability, and waking other processes."""

import os
import sqlite3
import stat
import threading
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from tape.compose import open_journal, open_store
from tape.core.errors import Corrupt, Unavailable, UsageError
from tape.core.event import Event
from tape.core.ids import GlobalSeq, RunId
from tape.core.sequence import AppendRequest
from tape.store.sqlite.location import Location
from tape.store.sqlite.migrate import migrate
from tape.store.sqlite.wake import DatagramWake
from tape.store.sqlite.worker import SqliteThread
from tape.store.sqlite.writer import Writer
from tests.contract.events import drain
from tests.deadlines import DEADLINE_S


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'data' / 'tape.db'}"


@pytest.mark.parametrize("level", ["normal", "NORMAL", "off"])
def test_less_than_full_durability_is_refused_unless_asked_for_twice(level: str) -> None:
    with pytest.raises(UsageError, match="--unsafe-durability"):
        Location.parse(f"sqlite:///x.db?synchronous={level}")

    assert Location.parse(f"sqlite:///x.db?synchronous={level}", unsafe_durability=True).synchronous == level.lower()


@pytest.mark.parametrize(
    "url",
    [
        "memory://x",
        "sqlite:///a#b.db",
        "sqlite:///a%00.db",
        "sqlite:///",
        "sqlite://host/x.db",
        "sqlite:///x.db?sync=full",
        "sqlite:///x.db?synchronous=maybe",
    ],
)
def test_a_url_that_says_something_else_is_refused(url: str) -> None:
    with pytest.raises(UsageError):
        Location.parse(url)


@pytest.mark.parametrize("keep", ["0", "-1", "x", "1000001"])
def test_a_memory_keeps_a_sane_number_of_entries(keep: str) -> None:
    with pytest.raises(UsageError, match="keep must be"):
        Location.parse(f"memory://?keep={keep}")


@pytest.mark.parametrize("url", ["mysql://x", "x.db", ""])
def test_an_unknown_scheme_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="a store is"):
        open_store(url)


def test_a_relative_and_an_absolute_path_differ() -> None:
    assert Location.parse("sqlite:///a/b.db").path == Path("a/b.db").absolute()
    assert Location.parse("sqlite:////a/b%20c.db").path == Path("/a/b c.db")


async def test_files_are_their_owners_only_whatever_the_umask(url: str, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        async with open_journal(url) as journal:
            await journal.append(Event(run_id="r", payload=1), open=True)
            modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "data").iterdir()}
    finally:
        os.umask(before)

    assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o700
    assert modes == dict.fromkeys(["tape.db", "tape.db-wal", "tape.db-shm"], 0o600)


async def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database, but long enough to be looked at\n" * 100)

    with pytest.raises(Corrupt, match="damaged"):
        async with open_store(f"sqlite:///{path}"):
            pytest.fail("it was opened")

    assert path.read_text().startswith("not a database")


async def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(UsageError, match="cannot open"):
        async with open_store(f"sqlite:///{tmp_path / 'file' / 'x.db'}"):
            pytest.fail("it was opened")


async def test_a_later_journal_has_a_larger_epoch(url: str) -> None:
    async with open_store("memory://") as first, open_store("memory://") as second, open_store(url) as third:
        assert first.epoch < second.epoch < third.epoch

    async with open_store(url) as again:
        assert again.epoch == third.epoch


def test_migrating_again_applies_nothing() -> None:
    connection = sqlite3.connect(":memory:", isolation_level=None)

    first, second = migrate(connection), migrate(connection)

    assert first.applied == ("0001 create_journal",) and second.applied == ()
    assert first.epoch == second.epoch
    connection.close()


def test_a_clock_that_jumps_back_moves_no_time_and_no_position() -> None:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    migrate(connection)
    clock = iter([1000, 5000, 400, 400, 6000])
    writer = Writer(clock=lambda: next(clock))

    times = []
    for _ in range(5):
        (outcome,) = writer.append(connection, [AppendRequest(events=(Event(run_id="r", payload=1),), opens=True)])
        assert not isinstance(outcome, Exception)
        times.append((outcome[0].ts_ms, outcome[0].global_seq))

    assert times == [(1000, 1), (5000, 2), (5000, 3), (5000, 4), (6000, 5)]
    connection.close()


def test_time_does_not_fall_after_everything_was_trimmed() -> None:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    migrate(connection)
    one = [AppendRequest(events=(Event(run_id="r", payload=1),), opens=True)]
    Writer(clock=lambda: 9000, keep_per_run=1).append(connection, one)
    Writer(clock=lambda: 9000, keep_per_run=1).append(connection, one)
    connection.execute("DELETE FROM tape_journal")

    (outcome,) = Writer(clock=lambda: 10).append(connection, one)

    assert not isinstance(outcome, Exception)
    assert outcome[0].ts_ms == 9000
    connection.close()


def test_positions_beyond_2_to_the_53_are_exact() -> None:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    migrate(connection)
    connection.execute("UPDATE tape_meta SET archived_through = ?", (2**53 - 5,))

    (outcome,) = Writer().append(connection, [AppendRequest(events=(Event(run_id="r", payload=1),) * 10, opens=True)])

    assert not isinstance(outcome, Exception)
    assert [entry.global_seq for entry in outcome] == list(range(2**53 - 4, 2**53 + 6))
    connection.close()


async def test_a_bounded_store_keeps_the_newest_of_each_run() -> None:
    async with open_store("memory://?keep=3") as store:
        await store.journal.append([AppendRequest(events=(Event(run_id="r", payload=1),) * 8, opens=True)])
        await store.journal.append([AppendRequest(events=(Event(run_id="s", payload=1),) * 2, opens=True)])

        heads = await store.runs.heads([RunId("r"), RunId("s")])
        assert {run: (head.floor, head.last_seq) for run, head in heads.items()} == {"r": (6, 8), "s": (1, 2)}
        assert await store.journal.bounds() == (6, 10)


async def test_a_wake_reaches_a_listener_however_deep_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / ("deep" * 40) / "tape.db.wake"
    folder.parent.mkdir()
    listener, teller = DatagramWake(folder), DatagramWake(folder)

    with anyio.fail_after(DEADLINE_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listener.wait_beyond, GlobalSeq(0))
            await anyio.wait_all_tasks_blocked()
            await teller.notify(GlobalSeq(1))

    listener.close()
    teller.close()
    assert list(folder.iterdir()) == []


async def test_a_socket_left_by_the_dead_is_removed(tmp_path: Path) -> None:
    folder = tmp_path / "wake"
    dead, teller = DatagramWake(folder), DatagramWake(folder)
    with anyio.move_on_after(0.01):
        await dead.wait_beyond(GlobalSeq(0))
    left = folder / next(folder.iterdir()).name
    dead.close()
    left.touch()

    await teller.notify(GlobalSeq(1))

    assert not left.exists()
    teller.close()


@pytest.mark.parametrize("damage", ["X'7BFF7D'", "'{\"n\":9}'", "7"])
async def test_the_entries_before_a_damaged_one_are_given_and_then_its_error(url: str, damage: str) -> None:
    async with open_journal(url) as journal:
        await journal.append([Event(run_id="r", payload={"n": n}) for n in range(5)], open=True)
    file = sqlite3.connect(Location.parse(url).path or "")
    file.execute(f"UPDATE tape_journal SET payload_json = CAST({damage} AS TEXT) WHERE global_seq = 4")
    file.commit()
    file.close()

    seen: list[int] = []
    async with open_journal(url) as journal:
        with pytest.raises(Corrupt) as corrupt:
            async for entry in journal.stream(follow=False):
                seen.append(entry.global_seq)
        rest = [entry.global_seq async for entry in journal.stream(from_global_seq=4, follow=False)]

    assert (seen, corrupt.value.global_seq, rest) == ([1, 2, 3], 4, [5])


async def test_a_damaged_entry_of_another_process_stops_nobody_else(url: str) -> None:
    async with open_journal(url) as reader, open_journal(url) as writer:
        live = reader.stream()
        await writer.append(Event(run_id="r", payload=1), open=True)
        await live.__anext__()
        file = sqlite3.connect(Location.parse(url).path or "", isolation_level=None)
        file.execute("INSERT INTO tape_journal SELECT 2, 2, ts_ms, depth, epoch, crc + 1, run_id, kind, type, subject, "
                     "schema_version, event_id, cause, trace_id, span_id, parent_span_id, attributes_json, "
                     "payload_json, payload_bytes FROM tape_journal")  # fmt: skip
        file.execute("UPDATE tape_heads SET last_seq = 2")
        file.close()

        with pytest.raises(Corrupt), anyio.fail_after(DEADLINE_S):
            await live.__anext__()

        assert (await reader.append(Event(run_id="r", payload=3)))[0].global_seq == 3


async def test_a_file_that_was_taken_away_takes_no_more_appends(url: str) -> None:
    async with open_journal(url) as journal:
        await journal.append(Event(run_id="r", payload=1), open=True)
        path = Location.parse(url).path
        assert path is not None
        path.unlink()

        with pytest.raises(Unavailable, match="removed or replaced"):
            await journal.append(Event(run_id="r", payload=2))


async def test_a_position_that_is_missing_is_an_alarm(url: str) -> None:
    async with open_journal(url) as journal:
        await journal.append([Event(run_id="r", payload=n) for n in range(5)], open=True)
        file = sqlite3.connect(Location.parse(url).path or "", isolation_level=None)
        file.execute("DELETE FROM tape_journal WHERE global_seq = 3")
        file.close()

        for stream in (journal.stream(follow=False), journal.stream(run_id="r", follow=False)):
            with pytest.raises(Corrupt, match=r"3( is|: it is) missing"):
                await drain(stream)


async def test_an_error_of_the_block_leaves_as_it_came(url: str) -> None:
    for error in (KeyError("mine"), SystemExit(3)):
        with pytest.raises(type(error)) as caught:
            async with open_journal(url):
                raise error
        assert caught.value is error


async def test_what_is_done_in_the_caller_s_thread_waits_for_what_was_asked_before() -> None:
    worker = SqliteThread("tape-test", lambda: sqlite3.connect(":memory:", check_same_thread=False))
    done: list[str] = []
    may_end = threading.Event()

    def asked(_: sqlite3.Connection) -> None:
        may_end.wait()
        done.append("asked")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(worker.call, asked)
        await anyio.lowlevel.checkpoint()
        tasks.start_soon(worker.call_here, lambda _: done.append("here"))
        await anyio.lowlevel.checkpoint()
        may_end.set()
    await worker.call_here(lambda _: done.append(threading.current_thread().name))
    await worker.stop()

    assert done == ["asked", "here", threading.current_thread().name]


async def test_an_error_in_the_caller_s_thread_is_raised_as_in_the_other() -> None:
    worker = SqliteThread("tape-test", lambda: sqlite3.connect(":memory:", check_same_thread=False))
    reasons = []

    for call in (worker.call, worker.call_here):
        with pytest.raises(Unavailable) as caught:
            await call(lambda connection: connection.execute("SELECT * FROM nowhere"))
        reasons.append(caught.value.reason)
    await worker.stop()

    assert reasons[0] == reasons[1]

"""A backup restored under a running node: after a new epoch the node continues with the restored journal alone."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import aclosing, closing
from pathlib import Path
from typing import Protocol

import anyio
import asyncpg
import pytest

from tape.bus.history import History
from tape.bus.journal import Journal
from tape.bus.stream import Stream
from tape.compose import open_store, run_journal
from tape.core.errors import InvalidCursor
from tape.core.event import Event
from tape.core.ids import GlobalSeq
from tape.core.ports import Store
from tests.contract.events import append, fill, make_event, positions, read_all, seqs
from tests.contract.reactions import catch_up, match, publish, reaction, sources
from tests.deadlines import DEADLINE_S

TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename LIKE 'tape%' ORDER BY tablename"


class Backup(Protocol):
    """A backup that is restored while nodes are connected."""

    url: str

    async def take(self) -> None: ...
    async def restore(self) -> None: ...


class File:
    """A copy of a SQLite file, by SQLite's own backup."""

    def __init__(self, folder: Path) -> None:
        self._file, self._copy = folder / "tape.db", folder / "copy.db"
        self.url = f"sqlite:///{self._file}"

    async def take(self) -> None:
        self._copied(self._file, self._copy)

    async def restore(self) -> None:
        self._copied(self._copy, self._file)

    @staticmethod
    def _copied(source: Path, target: Path) -> None:
        with closing(sqlite3.connect(source)) as one, closing(sqlite3.connect(target)) as other:
            one.backup(other)


class Tables:
    """A copy of the journal's tables; restoring it disconnects nobody."""

    def __init__(self, url: str) -> None:
        self.url = url

    async def take(self) -> None:
        await self._execute("CREATE TABLE copy_of_{0} AS TABLE {0}")

    async def restore(self) -> None:
        await self._execute("DELETE FROM {0}", "INSERT INTO {0} SELECT * FROM copy_of_{0}")

    async def _execute(self, *statements: str) -> None:
        connection = await asyncpg.connect(self.url)
        async with connection.transaction():
            for (table,) in await connection.fetch(TABLES):
                for statement in statements:
                    await connection.execute(statement.format(table))
        await connection.close()


@pytest.fixture(scope="session")
def postgres_template(journal_template: str) -> str:
    return journal_template


@pytest.fixture(params=["sqlite", "postgres"])
def backup(request: pytest.FixtureRequest, tmp_path: Path) -> Backup:
    return File(tmp_path) if request.param == "sqlite" else Tables(request.getfixturevalue("postgres_url"))


@pytest.fixture
async def store(backup: Backup) -> AsyncIterator[Store]:
    async with open_store(backup.url) as store:
        yield store


@pytest.fixture
async def journal(store: Store) -> AsyncIterator[Journal]:
    async with run_journal(store) as journal:
        yield journal


async def begin_epoch(url: str) -> None:
    async with open_store(url) as other:
        await other.new_epoch()


async def until_epoch_reset(live: Stream) -> None:
    with pytest.raises(InvalidCursor), anyio.fail_after(DEADLINE_S):
        while True:
            await anext(live)


async def test_a_node_goes_on_in_what_was_restored(journal: Journal, backup: Backup) -> None:
    await fill(journal, "r1", 2)
    await backup.take()
    await journal.append([make_event("r1", 3), make_event("r1", 4)])
    async with aclosing(journal.stream(run_id="r1")) as live:
        assert seqs([await anext(live) for _ in range(4)]) == [1, 2, 3, 4]

        await backup.restore()
        await begin_epoch(backup.url)
        await until_epoch_reset(live)

    (entry,) = await journal.append(make_event("r1", 30))
    assert (entry.global_seq, entry.seq) == (3, 3)
    assert [entry.payload for entry in await read_all(journal, "r1")] == [{"n": 1}, {"n": 2}, {"n": 30}]


async def test_what_an_appender_remembers_of_a_lost_journal_is_not_what_it_finds(
    journal: Journal, backup: Backup
) -> None:
    """The restored journal reaches the same head and count of changes, but its run is shorter."""
    await journal.append([make_event("r1", 1), make_event("r2", 1)], open=True)
    await backup.take()
    await journal.open_run("r3")
    await journal.append(make_event("r1", 2))
    await journal.append(make_event("r1", 3))
    await backup.restore()
    async with open_store(backup.url) as other:
        await append(other, make_event("r2", 2), make_event("r2", 3))
        await other.new_epoch()

    (entry,) = await journal.append(make_event("r1", 20))

    assert (entry.global_seq, entry.seq) == (5, 2)
    assert seqs(await read_all(journal, "r1")) == [1, 2]


async def test_readers_of_what_was_restored_hear_nothing_of_what_was_lost(journal: Journal, backup: Backup) -> None:
    await fill(journal, "r1", 2)
    await backup.take()
    async with aclosing(journal.stream()) as live:
        await journal.append([Event(run_id="r1", payload="lost") for _ in range(3)])
        assert positions([await anext(live) for _ in range(5)]) == [1, 2, 3, 4, 5]
        await backup.restore()
        await begin_epoch(backup.url)

        async with aclosing(journal.stream()) as again:
            first = [await anext(again), await anext(again)]
            await journal.append(Event(run_id="r1", payload="kept"))
            assert (await anext(again)).payload == "kept" and positions(first) == [1, 2]
        await until_epoch_reset(live)


async def test_what_is_appended_after_a_restore_is_matched_though_its_positions_were_before(
    store: Store, backup: Backup
) -> None:
    await store.reactions.register(reaction())
    await publish(store, 2)
    matcher = await match(store)
    await backup.take()
    await publish(store, 2)
    await catch_up(matcher)
    await backup.restore()
    await begin_epoch(backup.url)

    later = await publish(store, 2)
    await catch_up(matcher)

    assert positions(later) == [4, 5] and await sources(store) == [2, 3, 4, 5]


async def test_an_epoch_that_goes_back_is_refused_until_a_new_one_begins(store: Store, backup: Backup) -> None:
    await append(store, make_event(n=1))
    await backup.take()
    await store.new_epoch()
    await backup.restore()

    with pytest.raises(InvalidCursor, match="tape migrate --new-epoch"):
        await store.journal.read(GlobalSeq(0))
    await begin_epoch(backup.url)
    assert positions((await store.journal.read(GlobalSeq(0))).entries) == [1]


async def test_a_floor_that_fell_with_a_restored_backup_is_not_remembered(store: Store, backup: Backup) -> None:
    async with open_store("memory://") as empty:
        history = History(store.journal, empty.journal)
        entries = await append(store, *(make_event(n=n) for n in range(4)))
        await backup.take()
        await store.retention.trim(GlobalSeq(3))
        assert (await history.read(GlobalSeq(0))).bounds == (4, 4)
        await backup.restore()
        await begin_epoch(backup.url)

        page = await history.read(GlobalSeq(0))

    assert page.entries == entries and page.bounds == (1, 4) and page.epoch == store.epoch


async def test_a_lake_that_is_ahead_of_the_restored_journal_has_nothing_of_it(store: Store, backup: Backup) -> None:
    async with open_store("memory://") as lake:
        history = History(store.journal, lake.journal)
        await append(lake, *(make_event(n=n) for n in range(3)))
        await append(store, make_event(n=0), make_event(n=1))
        await store.retention.trim(GlobalSeq(1))
        await backup.take()
        await append(store, make_event(n=2), make_event(n=3))
        await store.retention.trim(GlobalSeq(3))
        assert positions((await history.read(GlobalSeq(0))).entries) == [1, 2, 3]
        await backup.restore()
        await begin_epoch(backup.url)

        page = await history.read(GlobalSeq(0))

    assert (positions(page.entries), page.bounds) == ([], (2, 2))

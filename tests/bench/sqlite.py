"""The journal on SQLite against bare sqlite3: the same rows, schema and durability, but nobody numbers or judges."""

import sqlite3
from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter

from tape.compose import run_journal
from tape.core.sequence import AppendRequest
from tape.store.sqlite.migrate import migrate
from tape.store.sqlite.store import open_store
from tape.store.sqlite.worker import SqliteThread
from tape.store.sqlite.writer import Writer
from tape.store.statements import statements
from tests.bench.compare import Comparison, Goal, Side
from tests.bench.loop import run
from tests.bench.publishers import publish, publish_prepared
from tests.bench.workload import database, entries, event, events

AREA = "sqlite"
ROWS = 20_000
SINGLES = 2_000
UNIT = "events/s"


def comparisons() -> list[Comparison]:
    raw_1000, raw_100 = partial(raw, 1_000), partial(raw, 100)
    one = partial(_row, peer=raw_singles)
    return [
        _row("append of 1,000", partial(store, 1_000), raw_1000, Goal(">=", 0.7)),
        _row("append of 1,000 through Journal.append, events made", partial(journal, 1_000), raw_1000),
        _row("append of 100", partial(store, 100), raw_100),
        _row("append of 100 through Journal.append, events made", partial(journal, 100), raw_100),
        one("one durable append on the writer's thread", store_singles, goal=Goal(">=", 0.75)),
        one("1 async publisher, events made", partial(publish, 1, SINGLES)),
        one("16 async publishers, events made", partial(publish, 16, 2 * SINGLES), goal=Goal(">=", 2.5)),
        one("16 async publishers, events prepared", partial(publish_prepared, 16, 2 * SINGLES)),
        one("64 async publishers, events made", partial(publish, 64, 4 * SINGLES)),
    ]


def _row(name: str, ours: Side, peer: Side, goal: Goal | None = None) -> Comparison:
    return Comparison(area=AREA, name=name, unit=UNIT, ours=ours, peer=peer, goal=goal)


def raw(batch: int) -> float:
    """Prepared tuples by executemany, a durable transaction a batch."""
    rows = [tuple(entry) for entry in entries(events(ROWS))]
    batches = [rows[first : first + batch] for first in range(0, ROWS, batch)]
    return _rate(ROWS, partial(_insert_batches, batches=batches))


def raw_singles() -> float:
    """A prepared tuple, a durable transaction each."""
    rows = [tuple(entry) for entry in entries(events(SINGLES))]
    return _rate(SINGLES, partial(_insert_each, rows=rows))


def _rate(count: int, insert: Callable[[sqlite3.Connection, str], None]) -> float:
    with database() as location:
        connection = location.connect()
        migrate(connection)
        started = perf_counter()
        insert(connection, statements("sqlite", "append.sql")["insert_entry"])
        elapsed = perf_counter() - started
        connection.close()
    return count / elapsed


def _insert_batches(
    connection: sqlite3.Connection, statement: str, batches: Sequence[Sequence[tuple[object, ...]]]
) -> None:
    for batch in batches:
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(statement, batch)
        connection.execute("COMMIT")


def _insert_each(connection: sqlite3.Connection, statement: str, rows: Sequence[tuple[object, ...]]) -> None:
    for row in rows:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(statement, row)
        connection.execute("COMMIT")


def store(batch: int) -> float:
    """Prepared requests through the store's own append."""
    made = events(ROWS)
    return run(_store([AppendRequest(events=tuple(made[at : at + batch]), opens=True) for at in range(0, ROWS, batch)]))


async def _store(requests: Sequence[AppendRequest]) -> float:
    with database() as location:
        async with open_store(location) as opened:
            started = perf_counter()
            for request in requests:
                await opened.journal.append([request])
            return ROWS / (perf_counter() - started)


def journal(batch: int) -> float:
    """What a user writes: events made and appended, a batch after the other."""
    return run(_journal(batch))


async def _journal(batch: int) -> float:
    with database() as location:
        async with open_store(location) as opened, run_journal(opened) as opened_journal:
            started = perf_counter()
            for first in range(0, ROWS, batch):
                await opened_journal.append(map(event, range(first, first + batch)), open=True)
            return ROWS / (perf_counter() - started)


def store_singles() -> float:
    """What the store does for a request once it is on the writer's thread, without the way there and back."""
    return run(_store_singles([AppendRequest(events=(each,), opens=True) for each in events(SINGLES)]))


async def _store_singles(requests: Sequence[AppendRequest]) -> float:
    with database() as location:
        worker = SqliteThread("bench-writer", location.connect)
        await worker.call(migrate)
        try:
            return await worker.call(partial(_append_each, Writer(), requests))
        finally:
            await worker.stop()


def _append_each(writer: Writer, requests: Sequence[AppendRequest], connection: sqlite3.Connection) -> float:
    started = perf_counter()
    for request in requests:
        connection.execute("BEGIN IMMEDIATE")
        writer.append(connection, [request])
        connection.execute("COMMIT")
    return len(requests) / (perf_counter() - started)

"""What a careful engineer writes instead of Tape: a table of events whose positions follow the order of commits.

A number from a sequence does not: a transaction may commit after one that took a later number, and a reader that has
passed it never sees it. So every append takes the same lock before it takes its numbers and holds it until it has
committed. There are no idempotency keys, no expected positions, no subjects, no wake-ups beyond NOTIFY.
"""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, NamedTuple, Protocol

import asyncpg

from tests.bench.users.stores import sqlite_path

DESCRIPTIONS = {
    "Postgres": "asyncpg with its default pool; one statement numbers and inserts under a row lock until it commits",
    "SQLite": "sqlite3 in WAL mode with synchronous=FULL; one thread; numbers and inserts in BEGIN IMMEDIATE",
}

POSTGRES_SCHEMA = """
CREATE TABLE head (position bigint NOT NULL);
INSERT INTO head VALUES (0);
CREATE TABLE runs (run_id text PRIMARY KEY, seq bigint NOT NULL);
CREATE TABLE events (
  position bigint PRIMARY KEY, run_id text NOT NULL, seq bigint NOT NULL, type text NOT NULL, payload jsonb NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(), UNIQUE (run_id, seq)
);
"""
# One statement is one round trip and one transaction; the row of `head` stays locked until the commit is on disk.
POSTGRES_APPEND = """
WITH numbered AS (UPDATE head SET position = position + $4 RETURNING position - $4 AS before),
run AS (
  INSERT INTO runs (run_id, seq) VALUES ($1, $4)
  ON CONFLICT (run_id) DO UPDATE SET seq = runs.seq + $4 RETURNING seq - $4 AS before
),
added AS (
  INSERT INTO events (position, run_id, seq, type, payload)
  SELECT numbered.before + n, $1, run.before + n, given.type, given.payload
  FROM numbered, run, unnest($2::text[], $3::jsonb[]) WITH ORDINALITY AS given (type, payload, n)
  RETURNING position, seq
)
SELECT min(seq) AS seq, min(position) AS position, pg_notify('events', max(position)::text) FROM added
"""
POSTGRES_READ = """
SELECT position, run_id, seq, type, payload FROM events WHERE run_id = $1 AND seq > $2 ORDER BY seq LIMIT $3
"""
SQLITE_SCHEMA = """
CREATE TABLE events (
  position INTEGER PRIMARY KEY, run_id TEXT NOT NULL, seq INTEGER NOT NULL, type TEXT NOT NULL, payload TEXT NOT NULL,
  created_at TEXT NOT NULL DEFAULT current_timestamp, UNIQUE (run_id, seq)
);
"""
SQLITE_READ = (
    "SELECT position, run_id, seq, type, payload FROM events WHERE run_id = ? AND seq > ? ORDER BY seq LIMIT ?"
)


class NewEvent(NamedTuple):
    """What a caller appends: a type, and a payload as JSON."""

    type: str
    payload: str


class Row(NamedTuple):
    """What a reader gets."""

    position: int
    run_id: str
    seq: int
    type: str
    payload: str


class Events(Protocol):
    """A table of events."""

    async def append(self, run_id: str, events: Sequence[NewEvent]) -> tuple[int, int]:
        """The seq and the position of the first one; the others follow."""

    async def read(self, run_id: str, after: int, limit: int) -> list[Row]: ...

    @property
    def grown(self) -> asyncio.Event:
        """Set with the next append; take it before a read, so that nothing between the two is missed."""


@asynccontextmanager
async def open_events(url: str) -> AsyncIterator[Events]:
    if url.startswith("sqlite:"):
        events = SqliteEvents(str(sqlite_path(url)))
        await events.prepare()
        yield events
        await events.close()
        return
    async with asyncpg.create_pool(url) as pool:
        if await pool.fetchval("SELECT to_regclass('events')") is None:
            await pool.execute(POSTGRES_SCHEMA)
        listener = await asyncpg.connect(url)
        yield await PostgresEvents.listening(pool, listener)
        await listener.close()


class PostgresEvents:
    """The table in Postgres; other processes hear of an append by NOTIFY."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        self._grown = asyncio.Event()

    @classmethod
    async def listening(cls, pool: asyncpg.Pool, listener: asyncpg.Connection) -> "PostgresEvents":
        events = cls(pool)
        await listener.add_listener("events", events._wake)
        return events

    def _wake(self, *_: object) -> None:
        grown, self._grown = self._grown, asyncio.Event()
        grown.set()

    async def append(self, run_id: str, events: Sequence[NewEvent]) -> tuple[int, int]:
        types, payloads = [event.type for event in events], [event.payload for event in events]
        row = await self._pool.fetchrow(POSTGRES_APPEND, run_id, types, payloads, len(events))
        return row["seq"], row["position"]

    async def read(self, run_id: str, after: int, limit: int) -> list[Row]:
        return [Row(*row) for row in await self._pool.fetch(POSTGRES_READ, run_id, after, limit)]

    @property
    def grown(self) -> asyncio.Event:
        return self._grown


class SqliteEvents:
    """The table in SQLite, used by this process only."""

    def __init__(self, path: str) -> None:
        self._thread = ThreadPoolExecutor(1)
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._grown = asyncio.Event()

    async def prepare(self) -> None:
        await self._call(self._open)

    async def close(self) -> None:
        assert self._connection is not None
        await self._call(self._connection.close)
        self._thread.shutdown()

    async def append(self, run_id: str, events: Sequence[NewEvent]) -> tuple[int, int]:
        first = await self._call(partial(self._append, run_id, events))
        grown, self._grown = self._grown, asyncio.Event()
        grown.set()
        return int(first[0]), int(first[1])

    async def read(self, run_id: str, after: int, limit: int) -> list[Row]:
        rows: list[Row] = await self._call(partial(self._read, run_id, after, limit))
        return rows

    @property
    def grown(self) -> asyncio.Event:
        return self._grown

    async def _call(self, work: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _open(self) -> None:
        self._connection = sqlite3.connect(self._path, isolation_level=None)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        if not self._connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'events'").fetchone():
            self._connection.executescript(SQLITE_SCHEMA)

    def _append(self, run_id: str, events: Sequence[NewEvent]) -> tuple[int, int]:
        assert self._connection is not None
        with self._connection as connection:
            connection.execute("BEGIN IMMEDIATE")
            (position,) = connection.execute("SELECT coalesce(max(position), 0) + 1 FROM events").fetchone()
            seqs = connection.execute("SELECT coalesce(max(seq), 0) + 1 FROM events WHERE run_id = ?", (run_id,))
            (seq,) = seqs.fetchone()
            rows = [(position + n, run_id, seq + n, *event) for n, event in enumerate(events)]
            connection.executemany(
                "INSERT INTO events (position, run_id, seq, type, payload) VALUES (?, ?, ?, ?, ?)", rows
            )
        return seq, position

    def _read(self, run_id: str, after: int, limit: int) -> list[Row]:
        assert self._connection is not None
        return [Row(*row) for row in self._connection.execute(SQLITE_READ, (run_id, after, limit))]

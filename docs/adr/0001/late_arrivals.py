"""How many entries a `> cursor` tail misses when a sequence numbers them, and when a lock does.

Needs asyncpg and the URL of an empty Postgres database: python late_arrivals.py postgresql://…
"""

import asyncio
import random
import sys

import asyncpg

WRITERS = 8
EVENTS = 2_500
HOLD_S = 0.003  # how long a writer's transaction stays open after its insert, at most

SCHEMA = """
DROP TABLE IF EXISTS by_sequence, by_lock;
CREATE TABLE by_sequence (position bigserial PRIMARY KEY);
CREATE TABLE by_lock (position bigint PRIMARY KEY);
"""
BY_LOCK = "INSERT INTO by_lock SELECT coalesce(max(position), 0) + 1 FROM by_lock"


async def by_sequence(connection: asyncpg.Connection) -> None:
    async with connection.transaction():
        await connection.execute("INSERT INTO by_sequence DEFAULT VALUES")
        await asyncio.sleep(random.uniform(0, HOLD_S))


async def by_lock(connection: asyncpg.Connection) -> None:
    await asyncio.sleep(random.uniform(0, HOLD_S))
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock(1)")  # the next statement sees all that is committed
        await connection.execute(BY_LOCK)


async def write(url: str, append: object) -> None:
    connection = await asyncpg.connect(url)
    for _ in range(EVENTS):
        await append(connection)  # type: ignore[operator]
    await connection.close()


async def tail(url: str, table: str, done: asyncio.Event) -> int:
    """How many entries a reader sees that asks for what lies beyond the last position it has seen."""
    connection = await asyncpg.connect(url)
    cursor = seen = 0
    is_last = False
    while not is_last:
        is_last = done.is_set()
        rows = await connection.fetch(f"SELECT position FROM {table} WHERE position > $1 ORDER BY position", cursor)
        seen += len(rows)
        cursor = rows[-1][0] if rows else cursor
        await asyncio.sleep(0.005)
    await connection.close()
    return seen


async def measure(url: str, table: str, append: object) -> None:
    done = asyncio.Event()
    reader = asyncio.create_task(tail(url, table, done))
    await asyncio.gather(*(write(url, append) for _ in range(WRITERS)))
    done.set()
    total = WRITERS * EVENTS
    print(f"{table:12} {total:,} committed, {total - await reader:,} missed by the tail")


async def main(url: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute(SCHEMA)
    await connection.close()
    await measure(url, "by_sequence", by_sequence)
    await measure(url, "by_lock", by_lock)


asyncio.run(main(sys.argv[1]))

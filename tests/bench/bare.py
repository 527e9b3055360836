"""The least that a durable publish on Postgres can be: one INSERT with its NOTIFY and commit; and who waits for it.

As a program it is the reader in another process: LISTEN, and a SELECT for each word it hears.
"""

import asyncio
import sys
from time import monotonic_ns

import asyncpg

from tests.bench.loop import run

TABLE = "CREATE TABLE bare (id bigint PRIMARY KEY, due bigint)"
INSERT = """
WITH added AS (INSERT INTO bare VALUES ((SELECT coalesce(max(id), 0) + 1 FROM bare), $1) RETURNING id)
SELECT pg_notify('bare', id::text) FROM added
"""
SELECT = "SELECT id, due FROM bare WHERE id > $1 ORDER BY id LIMIT 512"


class Publisher:
    """Inserts one row at a time on one connection, as a journal that numbers densely must."""

    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection
        self._turn = asyncio.Lock()
        self.late: list[int] = []

    async def prepare(self) -> None:
        await self._connection.execute(TABLE)

    async def send(self, due: int) -> None:
        async with self._turn:
            await self._connection.execute(INSERT, due)
        self.late.append(monotonic_ns() - due)


async def _report(url: str, count: int) -> None:
    heard, late, last = asyncio.Event(), list[int](), 0
    connection, listener = await asyncpg.connect(url), await asyncpg.connect(url)
    await listener.add_listener("bare", lambda *_: heard.set())
    while len(late) < count:
        if rows := await connection.fetch(SELECT, last):
            late += [monotonic_ns() - due for _, due in rows]
            if last == 0:
                print("reading", flush=True)
            last = rows[-1][0]
        else:
            await heard.wait()
            heard.clear()
    print(*late)


if __name__ == "__main__":
    run(_report(sys.argv[1], int(sys.argv[2])))

"""The worker of an outbox by hand: takes a row, handles it and deletes it in one transaction, on four connections."""

import asyncio
import sys

import asyncpg

from tests.bench.users.handled import note

CONNECTIONS = 4
POLL_S = 5.0
TAKE = (
    "DELETE FROM outbox WHERE id = (SELECT id FROM outbox ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING number"
)


async def main(url: str) -> None:
    grown = asyncio.Semaphore(0)
    listener = await asyncpg.connect(url)
    await listener.add_listener("outbox", lambda *_: grown.release())
    async with asyncio.TaskGroup() as tasks:
        for _ in range(CONNECTIONS):
            tasks.create_task(_handle(await asyncpg.connect(url), grown))


async def _handle(connection: asyncpg.Connection, grown: asyncio.Semaphore) -> None:
    while True:
        async with connection.transaction():
            number = await connection.fetchval(TAKE)
            if number is not None:
                await connection.execute("INSERT INTO invoices VALUES ($1)", number)
                note(number)
        if number is None:
            await _wait(grown)


async def _wait(grown: asyncio.Semaphore) -> None:
    """A notification may be lost, so there is a poll behind it."""
    try:
        async with asyncio.timeout(POLL_S):
            await grown.acquire()
    except TimeoutError:
        return


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))

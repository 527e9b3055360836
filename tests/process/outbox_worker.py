"""A process with two outbox handlers: one writes in the delivery's transaction, one in its own."""

import sys
from datetime import timedelta

import anyio
import asyncpg

from tape.outbox import OutboxEvent, OutboxListener
from tests.process.lifetime import end_with_parent

LEASE = timedelta(seconds=1)


async def apply_once(event: OutboxEvent, connection: asyncpg.Connection) -> None:
    await connection.execute("INSERT INTO effects (n, handler) VALUES ($1, 'once')", event.payload["n"])


async def run(url: str) -> None:
    async def apply_by_itself(event: OutboxEvent) -> None:
        connection = await asyncpg.connect(url)
        try:
            await connection.execute("INSERT INTO effects (n, handler) VALUES ($1, 'itself')", event.payload["n"])
        finally:
            connection.terminate()

    listener = OutboxListener(url, lease=LEASE, slots=8)
    listener.listen(handler_name="test.once", handler=apply_once)
    listener.listen(handler_name="test.itself", handler=apply_by_itself)
    await listener.run()


if __name__ == "__main__":
    end_with_parent()
    anyio.run(run, sys.argv[1])

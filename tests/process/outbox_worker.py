"""A process with two outbox handlers: one writes in the delivery's transaction, one in its own.

It records when they begin.
"""

import sys
from datetime import timedelta
from pathlib import Path

import anyio
import asyncpg

from tape.checker.lines import DeliverLine
from tape.outbox import OutboxEvent, OutboxListener
from tests.process.lifetime import end_with_parent
from tests.process.recorder import Recorder

LEASE = timedelta(seconds=1)


async def run(url: str, records: Recorder) -> None:
    def note(handler: str, event: OutboxEvent) -> None:
        records.write(DeliverLine, step="invoke", handler=handler, event_id=str(event.payload["n"]))

    async def apply_once(event: OutboxEvent, connection: asyncpg.Connection) -> None:
        note("once", event)
        await connection.execute("INSERT INTO effects (n, handler) VALUES ($1, 'once')", event.payload["n"])

    async def apply_by_itself(event: OutboxEvent) -> None:
        note("itself", event)
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
    anyio.run(run, sys.argv[1], Recorder(Path(sys.argv[2])))

"""A process that runs one version of a handler, named by the types it takes; its effects name the version."""

import sqlite3
import sys
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from tape.core.background import background
from tape.outbox import OutboxEvent, OutboxListener
from tests.process.lifetime import end_with_parent

LEASE = timedelta(seconds=1)


async def note(version: str, event: OutboxEvent, connection: Any) -> None:
    statement = (
        f"INSERT INTO effects (n, type, version) VALUES ({event.payload['n']}, '{event.event_type}', '{version}')"
    )
    if isinstance(connection, sqlite3.Connection):
        connection.execute(statement)
    else:
        await connection.execute(statement)


async def report(listener: OutboxListener, ready: Path) -> Any:
    while not listener.is_listening:  # noqa: ASYNC110 - there is no event for it
        await anyio.sleep(0.005)
    ready.touch()
    await anyio.sleep_forever()


async def run(url: str, ready: Path, version: str, types: list[str]) -> None:
    listener = OutboxListener(url, lease=LEASE, slots=4)
    handler_name = "test.other" if version == "other" else "test.seen"
    listener.listen(handler_name=handler_name, handler=partial(note, version), event_types=types)
    async with background(partial(report, listener, ready)):
        await listener.run()


if __name__ == "__main__":
    end_with_parent()
    url, ready, version, *types = sys.argv[1:]
    anyio.run(run, url, Path(ready), version, types)

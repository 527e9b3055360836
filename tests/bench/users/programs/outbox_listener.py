"""A listener of the outbox, as docs/how-to/outbox-in-a-service.md writes it: `python -m … URL plain|transactional`."""

import sys
from typing import Any

import anyio

from tape.outbox import OutboxEvent, OutboxListener
from tests.bench.users.handled import note


async def plain(event: OutboxEvent) -> None:
    note(number_of(event))


async def on_postgres(event: OutboxEvent, connection: Any) -> None:
    await connection.execute("INSERT INTO invoices VALUES ($1)", number_of(event))
    note(number_of(event))


async def on_sqlite(event: OutboxEvent, connection: Any) -> None:
    connection.execute("INSERT INTO invoices VALUES (?)", (number_of(event),))
    note(number_of(event))


def number_of(event: OutboxEvent) -> int:
    number = event.payload["number"]
    assert isinstance(number, int)
    return number


def main(url: str, kind: str) -> None:
    writing = on_sqlite if url.startswith("sqlite:") else on_postgres
    listener = OutboxListener(url)
    listener.listen(handler_name="bench.handler", handler=plain if kind == "plain" else writing)
    anyio.run(listener.run)


if __name__ == "__main__":
    main(*sys.argv[1:])

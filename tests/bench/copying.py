"""Rows as binary COPY takes them, encoded beforehand: the fastest way there is into Postgres."""

import struct
from collections.abc import Sequence
from io import BytesIO

import asyncpg

from tape.core.event import Entry

HEADER = b"PGCOPY\n\xff\r\n\0" + struct.pack("!ii", 0, 0)
TRAILER = struct.pack("!h", -1)
NUMBERS = {"depth": "!i", "schema_version": "!h"}


def encoded(entries: Sequence[Entry]) -> bytes:
    return HEADER + b"".join(map(_row, entries)) + TRAILER


async def copy(connection: asyncpg.Connection, batch: bytes) -> None:
    await connection.copy_to_table("tape_journal", source=BytesIO(batch), format="binary")


def _row(entry: Entry) -> bytes:
    fields = [_field(name, value) for name, value in entry._asdict().items()]
    return struct.pack("!h", len(fields)) + b"".join(fields)


def _field(name: str, value: object) -> bytes:
    match value:
        case None:
            return struct.pack("!i", -1)
        case int():
            data = struct.pack(NUMBERS.get(name, "!q"), value)
        case str():
            data = value.encode()
        case _:
            raise TypeError(f"{name} is {type(value).__name__}")
    return struct.pack("!i", len(data)) + data

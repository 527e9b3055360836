"""The entries that a request with a key wrote the first time."""

import asyncpg

from tape.core.event import Entry
from tape.core.ids import Epoch
from tape.core.sequence import AppendRequest, KeyRecord


async def stored_entries(
    connection: asyncpg.Connection, between: str, request: AppendRequest, record: KeyRecord, epoch: Epoch
) -> list[Entry]:
    """The stored entries; if some of them were trimmed, the request's own events at their old positions."""
    rows = await connection.fetch(between, record.first, record.first + len(record.seqs) - 1)
    if len(rows) < len(record.seqs):
        return list(record.entries(request.events, epoch))
    return [Entry._make(row) for row in rows]

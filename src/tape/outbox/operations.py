"""Handles the operations of an outbox."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final
from urllib.parse import urlsplit

from tape.core.caller import Caller
from tape.core.errors import NotFound
from tape.core.outbox_record import OutboxDetail, OutboxRecord, OutboxStats, RetentionResult
from tape.core.page import ANSWER_BYTES, Page, decode_cursor, encode_cursor, fit_answer
from tape.operations.outbox import (
    GetOutboxEvent,
    GetOutboxStats,
    HandedOverRows,
    HandOverOutbox,
    ListOutbox,
    MadePartitions,
    PartitionOutbox,
    ReplayedOutbox,
    ReplayOutbox,
    RetainOutbox,
)
from tape.outbox.database import may_have_outbox, open_table
from tape.settings import Settings
from tape.store.outbox.table import ANY_GENERATION, LAST, OutboxTable, RowFilter

AT_ONCE: Final = 50
SCHEMA: Final = "core"


class OutboxOperations:
    """The rows of an outbox; its database is opened for each request, because requests are rare."""

    def __init__(self, url: str, schema: str = SCHEMA) -> None:
        self._url = url
        self._schema = schema

    async def list(self, request: ListOutbox, caller: Caller) -> Page[OutboxRecord]:
        which = RowFilter(status=request.status, event_type=request.event_type, generation=_or_any(request.generation))
        (before,) = decode_cursor(request.cursor, int, question=request.question) or (LAST,)
        async with self._table() as table:
            found = await _newest(table, which, request.limit + 1, int(before))
        rows = fit_answer(found[: request.limit], lambda row: row.size)
        rest = encode_cursor((rows[-1].position,), request.question) if len(found) > len(rows) else ""
        return Page(rows, rest)

    async def get(self, request: GetOutboxEvent, caller: Caller) -> OutboxDetail:
        async with self._table() as table:
            found = await table.find(request.event_id)
        if found is None:
            raise NotFound(f"no row of the outbox is {str(request.event_id)!r}")
        return found

    async def stats(self, request: GetOutboxStats, caller: Caller) -> OutboxStats:
        async with self._table() as table:
            return await table.stats()
        raise AssertionError("the outbox suppresses no exception")

    async def replay(self, request: ReplayOutbox, caller: Caller) -> ReplayedOutbox:
        target, by = _or_own(request.generation), request.replayed_by
        failed = RowFilter(
            event_type=request.event_type,
            handler_name=request.handler_name,
            generation=_or_any(request.from_generation),
        )
        async with self._table() as table:
            if request.event_ids:
                count = len(await table.replay(request.event_ids, target, by))
            else:
                count = await table.replay_failed(failed, target, by)
        return ReplayedOutbox(replayed=count)

    async def hand_over(self, request: HandOverOutbox, caller: Caller) -> HandedOverRows:
        async with self._table() as table:
            count = await table.hand_over(request.retired, _or_own(request.generation))
        return HandedOverRows(handed_over=count)

    async def retain(self, request: RetainOutbox, caller: Caller) -> RetentionResult:
        async with self._table() as table:
            return await table.retain(request)
        raise AssertionError("the outbox suppresses no exception")

    async def partition(self, request: PartitionOutbox, caller: Caller) -> MadePartitions:
        async with self._table() as table:
            return MadePartitions(made=tuple(await table.divide()))
        raise AssertionError("the outbox suppresses no exception")

    @asynccontextmanager
    async def _table(self) -> AsyncIterator[OutboxTable]:
        """The table, or NotFound; nothing is created."""
        if urlsplit(self._url).scheme not in ("sqlite", "postgresql", "postgres"):
            raise NotFound("this store has no outbox; name another database in TAPE_OUTBOX_URL")
        missing = NotFound(f"there is no outbox in the schema {self._schema!r}; tape outbox migrate creates one")
        if not may_have_outbox(self._url, self._schema):
            raise missing
        async with open_table(self._url, self._schema) as table:
            if not await table.is_there():
                raise missing
            yield table


async def _newest(table: OutboxTable, which: RowFilter, limit: int, before: int) -> list[OutboxRecord]:
    """The newest rows, a few at a time, as they may be large; and no more than an answer carries."""
    found: list[OutboxRecord] = []
    size = 0
    while len(found) < limit and size <= ANSWER_BYTES:
        page = await table.listed(which, min(AT_ONCE, limit - len(found)), before)
        found += page
        size += sum(row.size for row in page)
        if len(page) < AT_ONCE:
            break
        before = page[-1].position
    return found


def _or_any(generation: int | None) -> int:
    return ANY_GENERATION if generation is None else generation


def _or_own(generation: int | None) -> int:
    return Settings.read(os.environ).generation if generation is None else generation

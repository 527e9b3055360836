"""The operations of an outbox on SQLite, which has no functions of its own: statement by statement."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tape.core.errors import UsageError
from tape.store.connection import Row
from tape.store.outbox.database import RunStatement


class SqliteSteps:
    """Implements `OutboxSteps`."""

    async def claim(self, run: RunStatement, asked: Mapping[str, Any]) -> list[Row]:
        if asked["expires"]:
            await _summarise(run, await run("expire", handlers=asked["handlers"]))
        await self.fan_out(run, max(asked["most"], asked["min_fan_out"]))
        rows = await run("claim", **asked)
        return await _completed(run, rows, asked["handlers"]) if rows else []

    async def fan_out(self, run: RunStatement, limit: int) -> None:
        rows = await run("take", most=limit)
        if rows:
            taken = {event_id for (event_id,) in await run("fan_out", ids=_ids(rows))}
            await run("mark_fanned_out", ids=_ids(rows), taken=json.dumps(sorted(taken)))

    async def settle(self, run: RunStatement, rows: Sequence[Mapping[str, Any]]) -> list[Row]:
        if any(row["idempotency_key"] for row in rows):
            await run("handle", handled=json.dumps([row for row in rows if row["idempotency_key"]]))
        newest = await run("settle", settled=json.dumps(rows))
        await run("summarise", ids=json.dumps(sorted({row["event_id"] for row in rows})))
        return newest

    async def retire(self, run: RunStatement, asked: Mapping[str, Any]) -> list[Row]:
        retired = await run("retire", **asked)
        await _summarise(run, await run("give_up", **asked))
        return retired

    def check_partitions(self) -> None:
        raise UsageError("SQLite has no partitions; an outbox that large belongs into Postgres")


async def _summarise(run: RunStatement, rows: Sequence[Row]) -> None:
    if rows:
        await run("summarise", ids=_ids(rows))


async def _completed(run: RunStatement, rows: Sequence[Row], handlers: str) -> list[Row]:
    ids = json.dumps([row[0] for row in rows])
    events = {row[0]: row for row in await run("events", ids=ids)}
    handled = set(await run("handled", ids=ids, handlers=handlers))
    return [(*row, *events[row[0]], row[:2] in handled) for row in rows]


def _ids(rows: Sequence[Row]) -> str:
    return json.dumps([event_id for (event_id,) in rows])

"""What a function in Postgres does in one call, step by step for SQLite, which has no functions of its own."""

import json
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Protocol

from tape.store.connection import Row


class Run(Protocol):
    """Runs a named statement in the transaction that is under way."""

    def __call__(self, name: str, **asked: object) -> Awaitable[list[Row]]: ...


async def claim(run: Run, asked: Mapping[str, Any]) -> list[Row]:
    """Expires, deals out and claims; answers with each claim, its event, and whether it was handled before."""
    if asked["expires"]:
        await _expire(run, asked["handlers"])
    await fan_out(run, max(asked["most"], asked["min_fan_out"]))
    rows = await run("claim", **asked)
    return await _completed(run, rows, asked["handlers"]) if rows else []


async def fan_out(run: Run, most: int) -> None:
    """Gives new rows to all handlers they are for."""
    rows = await run("take", most=most)
    if not rows:
        return
    taken = {event_id for (event_id,) in await run("fan_out", ids=_ids(rows))}
    await run("mark_fanned_out", ids=_ids(rows), taken=json.dumps(sorted(taken)))


async def retire(run: Run, asked: Mapping[str, Any]) -> list[Row]:
    """Removes versions that have not been seen for long, and fails what no remaining version takes."""
    retired = await run("retire", **asked)
    rows = await run("give_up", **asked)
    if rows:
        await run("summarise", ids=_ids(rows))
    return retired


async def settle(run: Run, rows: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Remembers what was handled, settles, and summarises."""
    if any(row["idempotency_key"] for row in rows):
        await run("handle", handled=json.dumps([row for row in rows if row["idempotency_key"]]))
    ours = await run("settle", settled=json.dumps(rows))
    await run("summarise", ids=json.dumps(sorted({row["event_id"] for row in rows})))
    return ours


async def _expire(run: Run, handlers: str) -> None:
    rows = await run("expire", handlers=handlers)
    if rows:
        await run("summarise", ids=_ids(rows))


async def _completed(run: Run, rows: Sequence[Row], handlers: str) -> list[Row]:
    ids = json.dumps([row[0] for row in rows])
    events = {row[0]: row for row in await run("events", ids=ids)}
    handled = set(await run("handled", ids=ids, handlers=handlers))
    return [(*row, *events[row[0]], row[:2] in handled) for row in rows]


def _ids(rows: Sequence[Row]) -> str:
    return json.dumps([event_id for (event_id,) in rows])

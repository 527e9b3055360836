"""`/outbox`: the rows of business transactions, those nobody could handle, and another chance for them."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final
from uuid import UUID

import anyio

from tape.core.errors import NotFound, TapeError, UsageError, quoted
from tape.server.http.request import Request
from tape.server.http.response import Response
from tape.server.node import Node
from tape.server.routes.outbox_shapes import (
    OutboxDetail,
    OutboxReplay,
    OutboxReplayed,
    OutboxRow,
    OutboxRows,
    OutboxStanding,
)
from tape.server.routes.shapes import shaped
from tape.settings import Settings
from tape.store.outbox.table import FULL_QUEUE, OutboxStats, OutboxTable, RowFilter
from tape.telemetry import Meters, log

USUAL: Final = 50
MOST: Final = 1_000
STATUSES: Final = ("pending", "in_flight", "delivered", "failed")
LOOK_S: Final = 2.0


async def list_rows(request: Request, node: Node) -> Response:
    """The newest first, of a status and a type or of any."""
    return await _listed(request, node, request.parameter("status"))


async def list_failed(request: Request, node: Node) -> Response:
    """The dead letters."""
    return await _listed(request, node, "failed")


async def show_row(request: Request, node: Node) -> Response:
    event_id = _event_id(request.values["event_id"])
    async with outbox_table(node) as table:
        found = await table.find(event_id)
    if found is None:
        raise NotFound(f"no row of the outbox is {str(event_id)!r}")
    return Response.json(OutboxDetail.of(*found))


async def show_stats(request: Request, node: Node) -> Response:
    async with outbox_table(node) as table:
        return Response.json(OutboxStanding.of(await table.stats()))
    raise AssertionError("an outbox swallows nothing")


async def replay_rows(request: Request, node: Node) -> Response:
    """Begins a new cycle of rows that have ended; who has handled one does not do so again."""
    asked: OutboxReplay = shaped(await request.json(), OutboxReplay)
    if asked.event_ids and (asked.event_type or asked.handler_name):
        raise UsageError("name events, or say of which type or handler, not both")
    target = Settings.read(os.environ).generation if asked.generation is None else asked.generation
    async with outbox_table(node) as table:
        if asked.event_ids:
            count = len(await table.replay(asked.event_ids, target, asked.replayed_by))
        else:
            which = RowFilter(event_type=asked.event_type, handler_name=asked.handler_name)
            count = await table.replay_failed(which, target, asked.replayed_by)
    return Response.json(OutboxReplayed(replayed=count))


async def look_at_outbox(node: Node) -> None:
    """Brings the gauges up to date, where there is an outbox."""
    node.meters.outbox_up.value = 0
    try:
        with anyio.move_on_after(LOOK_S):
            async with outbox_table(node) as table:
                _note(node.meters, await table.stats())
    except TapeError:
        return


@asynccontextmanager
async def outbox_table(node: Node) -> AsyncIterator[OutboxTable]:
    """The outbox of this server, if it has one."""
    if node.outbox is None:
        raise NotFound("this server's store has no outbox; name another database in TAPE_OUTBOX_URL")
    async with node.outbox() as table:
        if not await table.is_there():
            raise NotFound("there is no outbox here; `tape outbox migrate` makes one")
        yield table


def _note(meters: Meters, stats: OutboxStats) -> None:
    meters.outbox_up.value = 1
    meters.outbox_pending.value = stats.pending
    meters.outbox_in_flight.value = stats.in_flight
    meters.outbox_failed.value = stats.failed
    meters.outbox_rows.value = stats.rows
    meters.outbox_oldest_s.value = stats.oldest_ms / 1000
    meters.outbox_ack_p50_s.value = stats.ack_p50_ms / 1000
    meters.outbox_ack_p99_s.value = stats.ack_p99_ms / 1000
    meters.outbox_notify_queue.value = stats.notify_queue_usage
    if stats.notify_queue_usage >= FULL_QUEUE:
        log.warning("outbox.notify_queue_filling", usage=stats.notify_queue_usage)


async def _listed(request: Request, node: Node, status: str | None) -> Response:
    if status is not None and status not in STATUSES:
        raise UsageError(f"status is {', '.join(STATUSES)}, not {quoted(status)}")
    wanted: Any = {"status": status, "event_type": request.parameter("event_type") or ""}
    limit = _limit(request.parameter("limit"))
    async with outbox_table(node) as table:
        found = await table.listed(RowFilter(**wanted), limit)
    return Response.json(OutboxRows(rows=[OutboxRow.of(record) for record in found]))


def _event_id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise UsageError(f"an event's id is a UUID, not {quoted(text)}") from None


def _limit(text: str | None) -> int:
    if text is None:
        return USUAL
    if not (text.isascii() and text.isdecimal() and len(text) <= 5) or not 1 <= int(text) <= MOST:
        raise UsageError(f"limit is 1 to {MOST:,}, not {quoted(text)}")
    return int(text)

"""`/outbox`: list, show and replay rows of the outbox, and its statistics."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final
from uuid import UUID

import anyio

from tape.core.errors import NotFound, TapeError, UsageError, quoted
from tape.core.outbox import OutboxRecord
from tape.core.page import ANSWER_BYTES, decode_cursor, encode_cursor
from tape.server.http.request import Request
from tape.server.http.response import Response
from tape.server.http.route import Parameter, ResponseSpec, Route, respond_with
from tape.server.node import Node
from tape.server.routes.bounded import fit, json_size
from tape.server.routes.outbox_schemas import (
    OutboxDetail,
    OutboxReplay,
    OutboxReplayed,
    OutboxRow,
    OutboxRows,
    OutboxStatus,
    Status,
    Text,
)
from tape.server.routes.parameters import CURSOR, LIMIT, limit_of
from tape.server.routes.schemas import parse_body
from tape.settings import Settings
from tape.store.outbox.table import FULL_QUEUE, LAST, OutboxStats, OutboxTable, RowFilter
from tape.telemetry import Meters, log

DEFAULT_LIMIT: Final = 50
AT_ONCE: Final = 50
STATUSES: Final = ("pending", "in_flight", "delivered", "failed")
UPDATE_S: Final = 2.0


async def list_rows(request: Request, node: Node) -> Response:
    """Newest first, filtered by status and type."""
    return await _listed(request, node, request.parameter("status"))


async def list_failed(request: Request, node: Node) -> Response:
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
        return Response.json(OutboxStatus.of(await table.stats()))
    raise AssertionError("the outbox suppresses no exception")


async def replay_rows(request: Request, node: Node) -> Response:
    """Makes ended rows pending again; a handler that has handled a row does not get it again."""
    replay: OutboxReplay = parse_body(await request.json(), OutboxReplay)
    if replay.event_ids and (replay.event_type or replay.handler_name):
        raise UsageError("name events, or a type or a handler, not both")
    target = Settings.read(os.environ).generation if replay.generation is None else replay.generation
    async with outbox_table(node) as table:
        if replay.event_ids:
            count = len(await table.replay(replay.event_ids, target, replay.replayed_by))
        else:
            rows = RowFilter(event_type=replay.event_type, handler_name=replay.handler_name)
            count = await table.replay_failed(rows, target, replay.replayed_by)
    return Response.json(OutboxReplayed(replayed=count))


async def update_outbox_gauges(node: Node) -> None:
    """Updates the gauges of the outbox, if there is one."""
    node.meters.outbox_up.value = 0
    try:
        with anyio.move_on_after(UPDATE_S):
            async with outbox_table(node) as table:
                _set_gauges(node.meters, await table.stats())
    except TapeError:
        return


@asynccontextmanager
async def outbox_table(node: Node) -> AsyncIterator[OutboxTable]:
    """The outbox of this server, or NotFound."""
    if node.outbox is None:
        raise NotFound("this server's store has no outbox; name another database in TAPE_OUTBOX_URL")
    async with node.outbox() as table:
        if not await table.is_there():
            raise NotFound("there is no outbox here; `tape outbox migrate` creates one")
        yield table


def _set_gauges(meters: Meters, stats: OutboxStats) -> None:
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
    filters: Any = {"status": status, "event_type": request.parameter("event_type") or ""}
    limit, question = limit_of(request, DEFAULT_LIMIT), f"outbox {status or ''} {filters['event_type']}"
    (before,) = decode_cursor(request.parameter("cursor") or "", int, question=question) or (LAST,)
    async with outbox_table(node) as table:
        found = await _found(table, RowFilter(**filters), limit + 1, int(before))
    rows = fit(OutboxRow.of(record) for record in found[:limit])
    rest = encode_cursor((found[len(rows) - 1].position,), question) if len(found) > len(rows) else ""
    return Response.json(OutboxRows(rows=rows, next_cursor=rest))


async def _found(table: OutboxTable, which: RowFilter, limit: int, before: int) -> list[OutboxRecord]:
    """The newest rows, a few at a time, as they may be large; and no more than an answer carries."""
    found: list[OutboxRecord] = []
    size = 0
    while len(found) < limit and size <= ANSWER_BYTES:
        page = await table.listed(which, min(AT_ONCE, limit - len(found)), before)
        found += page
        size += sum(json_size(dict(record.event.payload)) for record in page)
        if len(page) < AT_ONCE:
            break
        before = page[-1].position
    return found


def _event_id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise UsageError(f"an event's id is a UUID, not {quoted(text)}") from None


_EVENT: Final = Parameter(name="event_id", location="path", schema=UUID, description="The event.")
_STATUS: Final = Parameter(name="status", location="query", schema=Status, description="Only rows with one status.")
_FILTERS: Final = (
    Parameter(name="event_type", location="query", schema=Text, description="Only events of one type."),
    LIMIT,
    CURSOR,
)
_PROBLEMS: Final = (400, 404, 503)

ROUTES: Final = (
    Route(
        method="GET", path="/outbox", name="listOutbox", summary="List rows of the outbox, newest first",
        handler=respond_with(list_rows), parameters=(_STATUS, *_FILTERS), response=ResponseSpec(schema=OutboxRows),
        problems=_PROBLEMS,
    ),
    Route(
        method="GET", path="/outbox/failed", name="listFailedOutbox", summary="List the dead letters",
        handler=respond_with(list_failed), parameters=_FILTERS, response=ResponseSpec(schema=OutboxRows),
        problems=_PROBLEMS,
    ),
    Route(
        method="GET", path="/outbox/stats", name="outboxStats", summary="Counts, ages and delivery times",
        handler=respond_with(show_stats), response=ResponseSpec(schema=OutboxStatus), problems=(404, 503),
    ),
    Route(
        method="POST", path="/outbox/replay", name="replayOutbox", summary="Deliver ended rows again",
        handler=respond_with(replay_rows), body=OutboxReplay, response=ResponseSpec(schema=OutboxReplayed),
        problems=(*_PROBLEMS, 413, 415),
    ),
    Route(
        method="GET", path="/outbox/{event_id}", name="showOutbox", summary="Show a row and its deliveries",
        handler=respond_with(show_row), parameters=(_EVENT,), response=ResponseSpec(schema=OutboxDetail),
        problems=_PROBLEMS,
    ),
)  # fmt: skip

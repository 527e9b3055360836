"""`/metrics`: the server's metrics in the text format of Prometheus, or four counters as JSON."""

from collections.abc import Iterator
from typing import Final

import anyio

from tape.bus.every_run import every_run
from tape.core.errors import TapeError
from tape.core.outbox_record import FULL_QUEUE, OutboxStats
from tape.core.run_query import OPEN_RUNS
from tape.operations.outbox import GetOutboxStats
from tape.server.http.request import Request
from tape.server.http.response import JSON, Response
from tape.server.http.route import ResponseSpec, Route, respond_with
from tape.server.node import Node
from tape.server.routes.schemas import BrokerCounters
from tape.telemetry import Counter, Gauge, Histogram, Meters, log

PROMETHEUS: Final = "text/plain; version=0.0.4; charset=utf-8"
UPDATE_S: Final = 2.0


async def metrics(request: Request, node: Node) -> Response:
    await _update_gauges(node)
    await _update_outbox_gauges(node)
    if JSON in (request.header("accept") or ""):
        return Response.json(_counters(node.meters))
    return Response(content_type=PROMETHEUS, body=render(node.meters).encode())


def render(meters: Meters) -> str:
    """The text format of Prometheus."""
    return "".join(f"{line}\n" for meter in meters.all() for line in _lines(meter))


async def _update_gauges(node: Node) -> None:
    """Updates the gauges; `store_up` is 0 when the store does not answer."""
    meters = node.meters
    meters.subscribers.value = len(node.subscribers)
    meters.lag.value = node.subscribers.lag
    meters.store_up.value = 0
    try:
        with anyio.move_on_after(UPDATE_S):
            meters.runs_open.value = len(await every_run(node.runs, OPEN_RUNS))
            meters.head.value, meters.floor.value = await node.journal.head(), await node.journal.floor()
            meters.store_up.value = 1
    except TapeError:
        return


async def _update_outbox_gauges(node: Node) -> None:
    """Updates the gauges of the outbox, if there is one."""
    node.meters.outbox_up.value = 0
    try:
        with anyio.move_on_after(UPDATE_S):
            _set_outbox_gauges(node.meters, await node.operations.call(GetOutboxStats()))
    except TapeError:
        return


def _set_outbox_gauges(meters: Meters, stats: OutboxStats) -> None:
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


def _counters(meters: Meters) -> BrokerCounters:
    return BrokerCounters(
        events_published=meters.published.total,
        events_streamed=meters.streamed.total,
        streams_dropped=meters.dropped.total,
        runs_open=int(meters.runs_open.value),
    )


def _lines(meter: Counter | Gauge | Histogram) -> Iterator[str]:
    yield f"# HELP {meter.name} {meter.help}"
    match meter:
        case Counter():
            yield f"# TYPE {meter.name} counter"
            yield from (f"{meter.name}{_labels(meter, values)} {count}" for values, count in meter.values.items())
        case Gauge():
            yield f"# TYPE {meter.name} gauge"
            yield f"{meter.name} {meter.value}"
        case Histogram():
            yield f"# TYPE {meter.name} histogram"
            yield from _buckets(meter)


def _buckets(meter: Histogram) -> Iterator[str]:
    *counts, count = meter.cumulated
    for bound, below in zip(meter.bounds, counts, strict=True):
        yield f'{meter.name}_bucket{{le="{bound}"}} {below}'
    yield f'{meter.name}_bucket{{le="+Inf"}} {count}'
    yield f"{meter.name}_sum {meter.total}"
    yield f"{meter.name}_count {count}"


def _labels(meter: Counter, values: tuple[str, ...]) -> str:
    pairs = ",".join(f'{name}="{value}"' for name, value in zip(meter.labels, values, strict=True))
    return f"{{{pairs}}}" if pairs else ""


ROUTES: Final = (
    Route(
        method="GET", path="/metrics", name="metrics", summary="The server's metrics", handler=respond_with(metrics),
        response=ResponseSpec(schema=str, content_type="text/plain", alternative=("application/json", BrokerCounters)),
    ),
)  # fmt: skip

"""Parts of the outbox: what publishing adds to a transaction, and what a full table adds to handling."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import cache
from time import perf_counter
from typing import Any

import asyncpg

from tape.outbox import OutboxEvent, OutboxListener, migrate, publish
from tests.bench.compare import Comparison, Goal, Side
from tests.bench.loop import run
from tests.bench.servers import postgres
from tests.bench.tasks_counting import Count

AREA = "outbox"
TRANSACTIONS = 2_000
EVENTS = 10_000
SLOTS = 1_000
DELIVERED = 1_000_000
ORDERS = "CREATE TABLE orders (n bigint NOT NULL)"
PLAIN = """
CREATE TABLE plain (
  id uuid PRIMARY KEY, event_type text NOT NULL, event_version integer NOT NULL, occurred_at timestamptz NOT NULL,
  source text NOT NULL, content_class text NOT NULL, channel text NOT NULL, generation bigint NOT NULL,
  payload jsonb NOT NULL, idempotency_key text NOT NULL, status text NOT NULL DEFAULT 'pending',
  created_at timestamptz NOT NULL DEFAULT now()
)
"""
INSERT = """
INSERT INTO plain (id, event_type, event_version, occurred_at, source, content_class, channel, generation, payload,
                   idempotency_key)
VALUES ($1, 'orders.placed', 1, $2, 'orders', 'internal', 'outbox_gen_0', 0, $3, $4)
"""
FILL = f"""
ALTER TABLE core.outbox DISABLE TRIGGER outbox_notify;
INSERT INTO core.outbox (id, event_type, source, payload, idempotency_key, status, is_fanned_out, ended_at)
SELECT gen_random_uuid(), 'orders.placed', 'orders', '{{"n": 1}}', n::text, 'delivered', true, now()
FROM generate_series(1, {DELIVERED}) AS n;
INSERT INTO core.outbox_deliveries (event_id, handler_name, generation, position, status, attempt, attempts, ended_at)
SELECT id, 'bench.handler', 0, position, 'delivered', 1, 1, now() FROM core.outbox;
INSERT INTO core.event_handled (handler_name, idempotency_key) SELECT 'bench.handler', idempotency_key FROM core.outbox;
INSERT INTO core.event_handlers (handler_name, generation, version, channel)
VALUES ('bench.handler', 0, 'bench', 'outbox_gen_0');
ALTER TABLE core.outbox ENABLE TRIGGER outbox_notify;
"""


def comparisons() -> list[Comparison]:
    return [
        _row("publish in the caller's transaction against a plain insert", "ms", published, inserted, Goal("<=", 1.3)),
        _row("events handled beside 1 M delivered ones", "events/s", worked_off_beside, worked_off, Goal(">=", 0.9)),
    ]


def _row(name: str, unit: str, ours: Side, peer: Side, goal: Goal | None = None) -> Comparison:
    return Comparison(area=AREA, name=name, unit=unit, ours=ours, peer=peer, goal=goal)


def published() -> float:
    return run(_transactions(lambda connection, event: publish(event, connection)))


def inserted() -> float:
    return run(_transactions(_insert))


def worked_off() -> float:
    with _database() as url:
        return run(_worked_off(url))


def worked_off_beside() -> float:
    return run(_worked_off(_full()))


async def _transactions(say: Callable[[Any, OutboxEvent], Awaitable[object]]) -> float:
    with _database() as url:
        connection = await asyncpg.connect(url)
        began = perf_counter()
        for number in range(TRANSACTIONS):
            async with connection.transaction():
                await connection.execute("INSERT INTO orders VALUES ($1)", number)
                await say(connection, _event(number))
        took = perf_counter() - began
        await connection.close()
    return took / TRANSACTIONS * 1000


async def _insert(connection: asyncpg.Connection, event: OutboxEvent) -> None:
    fields = event.event_id, event.occurred_at, event.payload_json, event.idempotency_key
    await connection.execute(INSERT, *fields)


async def _worked_off(url: str) -> float:
    count = Count(EVENTS)

    async def end(event: OutboxEvent) -> None:
        await count.one()

    connection = await asyncpg.connect(url)
    async with connection.transaction():
        for number in range(EVENTS):
            await publish(_event(number), connection)
    await connection.close()
    began = perf_counter()
    async with _listening(url, end):
        await count.is_done.wait()
        took = perf_counter() - began
    return EVENTS / took


@asynccontextmanager
async def _listening(url: str, handler: Callable[[OutboxEvent], Awaitable[None]]) -> AsyncIterator[None]:
    listener = OutboxListener(url, slots=SLOTS)
    listener.listen(handler_name="bench.handler", handler=handler)
    async with asyncio.TaskGroup() as group:
        working = group.create_task(listener.run())
        yield
        listener.stop()
        await working


def _event(number: int) -> OutboxEvent:
    return OutboxEvent(event_type="orders.placed", source="orders", payload={"n": number, "status": "placed"})


@contextmanager
def _database() -> Iterator[str]:
    server = postgres()
    with server.database(server.template(_prepare)) as url:
        yield url


async def _prepare(url: str) -> None:
    await migrate(url)
    connection = await asyncpg.connect(url)
    await connection.execute(f"{ORDERS}; {PLAIN}")
    await connection.close()


@cache
def _full() -> str:
    """One for all turns: filling it takes longer than they do."""
    server = postgres()
    url = server.create_database(server.template(_prepare))
    run(_fill(url))
    return url


async def _fill(url: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute(FILL)
    await connection.execute("VACUUM ANALYZE")
    await connection.close()

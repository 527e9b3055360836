"""A shop on FastAPI: an order and its event are one transaction, and each order gets one invoice.

Run it with `uvicorn fastapi_outbox:app`, and DATABASE_URL naming a Postgres of yours.
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio
import asyncpg
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel

from tape.outbox import OutboxEvent, OutboxListener, migrate, parse, publish

URL = os.environ["DATABASE_URL"]
TABLES = """
CREATE TABLE IF NOT EXISTS orders (number integer PRIMARY KEY, cents integer NOT NULL);
CREATE TABLE IF NOT EXISTS invoices (number integer NOT NULL, cents integer NOT NULL);
"""


class Order(BaseModel):
    """What a customer sends."""

    number: int
    cents: int


@dataclass(frozen=True)
class Placed:
    """The fields of the event that billing uses; it ignores the others."""

    number: int
    cents: int


async def write_invoice(event: OutboxEvent, connection: asyncpg.Connection) -> None:
    """Runs in the transaction that records the event as handled."""
    placed = parse(event, Placed)
    await connection.execute("INSERT INTO invoices VALUES ($1, $2)", placed.number, placed.cents)


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    await migrate(URL)
    async with asyncpg.create_pool(URL, min_size=1) as app.state.pool:
        await app.state.pool.execute(TABLES)
        listener = OutboxListener(URL)
        listener.listen(handler_name="billing.invoice_writer", handler=write_invoice, event_types=["orders.placed"])
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listener.run)
            yield
            listener.stop()


app = FastAPI(lifespan=lifespan)


@app.post("/orders", status_code=201)
async def place_order(order: Order) -> Order:
    async with app.state.pool.acquire() as connection, connection.transaction():
        await connection.execute("INSERT INTO orders VALUES ($1, $2)", order.number, order.cents)
        await publish(OutboxEvent(event_type="orders.placed", source="shop", payload=order.model_dump()), connection)
        if order.cents < 0:
            raise HTTPException(422, "nobody is paid for an order")  # the order and its event are rolled back
    return order


@app.get("/invoices")
async def list_invoices() -> list[Order]:
    rows = await app.state.pool.fetch("SELECT number, cents FROM invoices ORDER BY number")
    return [Order(**row) for row in rows]

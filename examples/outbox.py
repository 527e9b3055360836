"""An order and its event in one transaction; a handler whose database effect applies once."""

import sqlite3
from functools import partial

import anyio

from tape.outbox import OutboxEvent, OutboxListener, migrate, publish

SHOP = "shop.db"


def place_order(number: int, is_paid: bool) -> None:
    connection = sqlite3.connect(SHOP)
    with connection:
        connection.execute("INSERT INTO orders VALUES (?)", (number,))
        publish(OutboxEvent(event_type="orders.placed", source="orders", payload={"number": number}), connection)
        if not is_paid:
            connection.rollback()
    connection.close()


async def write_invoice(listener: OutboxListener, event: OutboxEvent, connection: sqlite3.Connection) -> None:
    connection.execute("INSERT INTO invoices VALUES (?)", (event.payload["number"],))
    print(f"invoice for order {event.payload['number']}")
    if event.payload["number"] == 3:
        listener.stop()


async def main() -> None:
    await migrate(f"sqlite:///{SHOP}")
    connection = sqlite3.connect(SHOP)
    connection.executescript("CREATE TABLE orders (number); CREATE TABLE invoices (number)")

    for number, is_paid in ((1, True), (2, False), (3, True)):
        place_order(number, is_paid)

    listener = OutboxListener(f"sqlite:///{SHOP}")
    listener.listen(handler_name="billing.invoice_writer", handler=partial(write_invoice, listener))
    await listener.run()
    print(connection.execute("SELECT count(*) FROM invoices").fetchone()[0], "invoices")
    connection.close()


anyio.run(main)

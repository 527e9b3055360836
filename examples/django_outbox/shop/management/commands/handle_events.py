"""`manage.py handle_events`: creates the outbox and writes an invoice for each order."""

import os

import anyio
from django.core.management.base import BaseCommand
from django.db import transaction

from shop.models import Invoice
from tape.outbox import OutboxEvent, OutboxListener, TerminalHandlerError, migrate


def write_invoice(event: OutboxEvent) -> None:
    """Called at least once for each event, so it keeps an invoice that exists."""
    number, cents = event.payload["number"], event.payload["cents"]
    if not isinstance(number, int) or not isinstance(cents, int):
        raise TerminalHandlerError("an order has a number and a price")
    with transaction.atomic():
        Invoice.objects.get_or_create(number=number, defaults={"cents": cents})


class Command(BaseCommand):
    """Runs until a signal ends it; the next start handles the rest."""

    help = "Handle the events that the shop has published."

    def handle(self, *args: object, **options: object) -> None:
        anyio.run(self._listen)

    async def _listen(self) -> None:
        url = os.environ["DATABASE_URL"]
        await migrate(url)
        listener = OutboxListener(url)
        listener.listen(handler_name="billing.invoice_writer", handler=write_invoice, event_types=["orders.placed"])
        self.stdout.write("listening")
        self.stdout.flush()
        await listener.run()

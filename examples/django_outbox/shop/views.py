"""Ordering: the order and its event are one transaction."""

import json

from django.db import connection, transaction
from django.http import HttpRequest, JsonResponse
from django.views.decorators.csrf import csrf_exempt

from shop.models import Invoice, Order
from tape.outbox import OutboxEvent, publish


class Unpaid(Exception):
    """The order is not paid."""


@csrf_exempt
def place_order(request: HttpRequest) -> JsonResponse:
    fields = json.loads(request.body)
    try:
        with transaction.atomic():
            order = Order.objects.create(number=fields["number"], cents=fields["cents"])
            publish(OutboxEvent(event_type="orders.placed", source="shop", payload=fields), connection)
            if order.cents < 0:
                raise Unpaid  # the order and its event are rolled back
    except Unpaid:
        return JsonResponse({"error": "nobody is paid for an order"}, status=422)
    return JsonResponse(fields, status=201)


def list_invoices(request: HttpRequest) -> JsonResponse:
    return JsonResponse({"invoices": list(Invoice.objects.order_by("number").values("number", "cents"))})

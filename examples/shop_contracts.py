"""The contracts of the shop's events: types, versions and payloads; `tape outbox contracts` reads them."""

from dataclasses import dataclass
from typing import Final

ORDER_PLACED_TYPE: Final = "orders.placed"
ORDER_PLACED_VERSION: Final = 1
ORDER_PAID_TYPE: Final = "orders.paid"
ORDER_PAID_VERSION: Final = 2


@dataclass(frozen=True)
class OrderPlaced:
    """A customer has ordered, and nothing is paid yet."""

    number: int
    cents: int


@dataclass(frozen=True)
class OrderPaid:
    """An order is paid in full."""

    number: int
    method: str = "card"

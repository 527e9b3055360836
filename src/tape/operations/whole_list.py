"""Reads a list to its end."""

from dataclasses import replace
from typing import TypeVar

from tape.operations.fields import MAX_LIMIT
from tape.operations.ledgers import Ledgers
from tape.operations.operation import PageRequest

R = TypeVar("R")


async def read_all(ledgers: Ledgers, request: PageRequest[R]) -> list[R]:
    """Everything in a list, page by page."""
    rows: list[R] = []
    request = replace(request, limit=MAX_LIMIT)
    while True:
        page = await ledgers.call(request)
        rows += page.rows
        if not page.next_cursor:
            return rows
        request = replace(request, cursor=page.next_cursor)

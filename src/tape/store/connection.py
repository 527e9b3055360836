"""What the nouns of this room ask of a database; each dialect answers in its own `connection.py`."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, TypeAlias

from tape.core.ids import GlobalSeq
from tape.core.ports import AppendOutcome, Transaction
from tape.core.sequence import Request

# What a driver gives back for a column is known only to the statement that asked for it.
Row: TypeAlias = tuple[Any, ...]
Parameters: TypeAlias = Mapping[str, object]


class Query(NamedTuple):
    """A statement to read with.

    With a budget, rows end once their last two columns, the payload, reach it in bytes. One with a width always has one
    row, of so many columns.
    """

    sql: str
    parameters: Parameters = MappingProxyType({})
    budget: int | None = None
    width: int = 0


class Connection(Protocol):
    """A database with a journal in it.

    The queries of a snapshot see one state. Statements of a transaction block are all there or absent. Inside a
    block, read through the block.
    """

    async def snapshot(self, *queries: Query) -> Sequence[Sequence[Row]]: ...
    def transaction(self) -> AbstractAsyncContextManager[Transaction]: ...
    async def append(self, requests: Sequence[Request]) -> Sequence[AppendOutcome]: ...
    async def wait(self, beyond: GlobalSeq) -> None: ...

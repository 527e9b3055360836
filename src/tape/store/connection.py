"""The port between the modules of this package and a database; each dialect implements it in its `connection.py`."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, TypeAlias

from tape.core.ids import GlobalSeq
from tape.core.ports import AppendOutcome, Transaction
from tape.core.sequence import AppendRequest

# Only the statement knows the types of its columns.
Row: TypeAlias = tuple[Any, ...]
Parameters: TypeAlias = Mapping[str, object]


class Query(NamedTuple):
    """A statement that reads. With a budget, rows end once their payloads, the last two columns, reach it in bytes."""

    sql: str
    parameters: Parameters = MappingProxyType({})
    budget: int | None = None


class Connection(Protocol):
    """A database with a journal in it.

    The queries of a snapshot see one state and write nothing. The statements of a transaction are all there or absent;
    inside one, read through it.
    """

    async def snapshot(self, *queries: Query) -> Sequence[Sequence[Row]]: ...
    def transaction(self) -> AbstractAsyncContextManager[Transaction]: ...
    async def append(self, requests: Sequence[AppendRequest]) -> Sequence[AppendOutcome]: ...
    async def wait(self, beyond: GlobalSeq) -> None: ...

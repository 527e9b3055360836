"""The port between an outbox and its database."""

from collections.abc import Awaitable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from tape.store.connection import Row


class RunStatement(Protocol):
    """Runs a named statement in the transaction that is under way."""

    def __call__(self, name: str, **asked: object) -> Awaitable[list[Row]]: ...


class OutboxSteps(Protocol):
    """Operations of several statements: one call of a function on Postgres, one by one on SQLite."""

    async def claim(self, run: RunStatement, asked: Mapping[str, Any]) -> list[Row]:
        """Expires, fans out and claims; a row has a claim, its event, and whether it was handled before."""
        ...

    async def fan_out(self, run: RunStatement, limit: int) -> None:
        """Creates deliveries of new rows for all handlers that take them."""
        ...

    async def settle(self, run: RunStatement, rows: Sequence[Mapping[str, Any]]) -> list[Row]:
        """Records handled keys, settles attempts, and returns those that were the newest."""
        ...

    async def retire(self, run: RunStatement, asked: Mapping[str, Any]) -> list[Row]:
        """Removes versions that have not run for long, and fails deliveries that no remaining version takes."""
        ...

    def check_partitions(self) -> None:
        """Raises `UsageError` if the dialect has no partitions."""
        ...


class OutboxDatabase(Protocol):
    """The database of an outbox. `own` raises our errors, `transaction` the driver's.

    `once` is `own` for statements that may each be a transaction by itself.
    """

    @property
    def steps(self) -> OutboxSteps: ...
    @property
    def schema(self) -> str: ...
    def own(self) -> AbstractAsyncContextManager[Any]: ...
    def once(self) -> AbstractAsyncContextManager[Any]: ...
    def transaction(self) -> AbstractAsyncContextManager[Any]: ...

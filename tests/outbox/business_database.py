"""A database with an outbox and a business table."""

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import anyio
import asyncpg

from tape.core.background import background
from tape.core.outbox_record import RetentionResult
from tape.outbox import EventHandler, OutboxEvent, OutboxListener, RetryPolicy, publish
from tests.deadlines import DEADLINE_S

QUICK = RetryPolicy(base=timedelta(milliseconds=1), cap=timedelta(milliseconds=2))


@dataclass(frozen=True, slots=True)
class BusinessDatabase:
    """The database of an application, in Postgres or SQLite."""

    name: str
    url: str

    @property
    def outbox(self) -> str:
        return "core.outbox" if self.name == "postgres" else "core_outbox"

    @property
    def long_ago(self) -> str:
        return "'epoch'" if self.name == "postgres" else "0"

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[Any]:
        """A connection of the application, without a transaction."""
        if self.name == "sqlite":
            connection = sqlite3.connect(self.url.removeprefix("sqlite:///"), 10, isolation_level=None)
            try:
                yield connection
            finally:
                connection.close()
            return
        connection = await asyncpg.connect(self.url)
        try:
            yield connection
        finally:
            await connection.close()

    async def rows(self, statement: str) -> list[tuple[Any, ...]]:
        async with self.connected() as connection:
            return await rows(connection, statement)

    async def run(self, statement: str) -> None:
        await self.rows(statement)

    async def publish(self, *events: OutboxEvent, generation: int = 0, commits: bool = True) -> None:
        """Publishes events in one business transaction, and commits it or rolls it back."""
        async with self.connected() as connection:
            await rows(connection, "BEGIN IMMEDIATE" if self.name == "sqlite" else "BEGIN")
            for event in events:
                await rows(connection, f"INSERT INTO orders (n) VALUES ({number(event)})")
                await publish(event, connection, generation=generation)
            await rows(connection, "COMMIT" if commits else "ROLLBACK")

    async def states(self, columns: str = "status") -> list[tuple[Any, ...]]:
        return await self.rows(f"SELECT {columns} FROM {self.outbox} ORDER BY position")

    async def wait_until(self, status: str, count: int, within_s: float = DEADLINE_S) -> None:
        """Waits until `count` rows have a status."""
        query = f"SELECT count(*) FROM {self.outbox} WHERE status = '{status}'"
        with anyio.fail_after(within_s):
            async with self.connected() as connection:
                while await rows(connection, query) != [(count,)]:  # noqa: ASYNC110 - there is no event for it
                    await anyio.sleep(0.01)

    @asynccontextmanager
    async def listening(self, handlers: Mapping[str, EventHandler], **options: Any) -> AsyncIterator[OutboxListener]:
        """A listener that runs during the block; `listen` has the options of each handler."""
        listen_options = {"retry_policy": QUICK} | options.pop("listen", {})
        listener = OutboxListener(self.url, **options)
        for name, handler in handlers.items():
            listener.listen(handler_name=name, handler=handler, **listen_options)

        async def run() -> Any:
            await listener.run()
            await anyio.sleep_forever()

        async with background(run):
            yield listener


async def rows(connection: Any, statement: str) -> list[tuple[Any, ...]]:
    if isinstance(connection, sqlite3.Connection):
        return connection.execute(statement).fetchall()
    return [tuple(row) for row in await connection.fetch(statement)]


def make_event(n: int, **fields: Any) -> OutboxEvent:
    return OutboxEvent(**({"event_type": "orders.placed", "source": "orders", "payload": {"n": n}} | fields))


def number(event: OutboxEvent) -> int:
    n = event.payload["n"]
    assert isinstance(n, int)
    return n


class RecordingHandler:
    """A handler that records its events."""

    def __init__(self, answer: Callable[[OutboxEvent], object] = lambda _: None) -> None:
        self.events: list[OutboxEvent] = []
        self._answer = answer
        self._has_more = anyio.Event()

    @property
    def numbers(self) -> list[int]:
        return [number(event) for event in self.events]

    async def __call__(self, event: OutboxEvent) -> None:
        self.events.append(event)
        self._has_more.set()
        answer = self._answer(event)
        if isinstance(answer, Exception):
            raise answer

    async def wait_for(self, count: int) -> None:
        with anyio.fail_after(DEADLINE_S):
            while len(self.events) < count:
                self._has_more = anyio.Event()
                await self._has_more.wait()


async def insert_handled(event: OutboxEvent, connection: Any) -> None:
    """A handler that inserts a row."""
    await rows(connection, f"INSERT INTO orders (n, note) VALUES ({number(event)}, 'handled')")


async def retain_until_deleted(retain: Callable[[], Awaitable[RetentionResult]]) -> list[RetentionResult]:
    """Marks rows and deletes them later; a clock of milliseconds may show the same time for both."""
    done = [await retain()]
    with anyio.fail_after(DEADLINE_S):
        while not done[-1].deleted:
            done.append(await retain())
    return done

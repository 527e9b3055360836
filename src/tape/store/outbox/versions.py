"""The registered versions of handlers: each takes rows of its own, so that no deployment replaces another."""

import json
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Any, Final

from tape.core.outbox import Begin, HandlerSubscription
from tape.store import caller_connection
from tape.store.clock import now_ms
from tape.store.connection import Row
from tape.store.outbox.database import OutboxDatabase
from tape.store.outbox.deliveries import FILE

PAGE: Final = 1_000
NO_HANDLERS: Final = "[]"
_MS: Final = timedelta(milliseconds=1)


class HandlerVersions:
    """The definitions of one process's handlers, each registered beside those of other deployments.

    A row is for a handler if any registered version of it takes the row; a version claims only what it takes itself.
    """

    def __init__(self, database: OutboxDatabase, subscriptions: Sequence[HandlerSubscription]) -> None:
        self._database = database
        self._subscriptions = subscriptions
        (self._generation,) = {each.generation for each in subscriptions}
        self._handlers = json.dumps([each.handler_name for each in subscriptions])
        self._versions = json.dumps([each.version for each in subscriptions])

    async def register(self) -> None:
        """Registers the versions; a new one also gets the older rows that its `begin` selects."""
        is_partial = any(each.begin not in ("pending", "all") for each in self._subscriptions)
        while is_partial and await self._fan_out_page():
            pass  # page by page before the lock is taken, which then covers only the rows that came meanwhile
        async with self._database.own() as connection:
            await self._run(connection, "alone")
            while is_partial and await self._fan_out(connection):
                pass
            rows = json.dumps([_registration(each) for each in self._subscriptions])
            found: dict[str, bool] = dict(await self._run(connection, "register", subscriptions=rows))
            for each in self._subscriptions:
                if found[each.version]:
                    await self._catch_up(connection, each.version, each.begin)

    async def refresh(self, retire_after: timedelta | None) -> list[str]:
        """Records that the versions run, and registers those that were retired.

        With `retire_after` it retires other versions of the same handlers that have not run for so long, and returns
        the names of their handlers. The caller itself must have run for as long: after a pause of all processes the
        others may be about to come back.
        """
        async with self._database.own() as connection:
            seen = await self._run(connection, "seen", versions=self._versions)
        if len(seen) < len(self._subscriptions):
            await self.register()
        if retire_after is None:
            return []
        async with self._database.own() as connection:
            return [name for (name,) in await self._retire(connection, retire_after // _MS)]

    async def _fan_out_page(self) -> bool:
        async with self._database.own() as connection:
            return await self._fan_out(connection)

    async def _fan_out(self, connection: object) -> bool:
        """Fans out a page of new rows to the registered versions; whether there may be more."""
        await self._database.steps.fan_out(partial(self._run, connection), PAGE)
        return await self._run(connection, "soon", handlers=NO_HANDLERS) == [(0,)]

    async def _catch_up(self, connection: object, version: str, begin: Begin) -> None:
        if begin == "now":
            return
        if begin == "pending":
            rows = await self._run(connection, "catch_up", version=version)
        else:
            position = 0 if begin == "all" else begin
            rows = await self._run(connection, "catch_up_from", version=version, position=position)
        if rows:
            ids = json.dumps([event_id for (event_id,) in rows])
            await self._run(connection, "mark_fanned_out", ids=ids, taken=ids)

    async def _retire(self, connection: object, after_ms: int) -> list[Row]:
        asked: dict[str, Any] = {"handlers": self._handlers, "versions": self._versions, "after_ms": after_ms}
        return await self._database.steps.retire(partial(self._run, connection), asked)

    async def _run(self, connection: object, name: str, **asked: object) -> list[Row]:
        parameters = {"generation": self._generation, "now_ms": now_ms(), **asked}
        return await caller_connection.execute(connection, FILE, name, parameters, self._database.schema)


def _registration(each: HandlerSubscription) -> dict[str, object]:
    return {
        "handler_name": each.handler_name,
        "generation": each.generation,
        "version": each.version,
        "channel": each.channel,
        "event_types": sorted(set(each.event_types)) or None,
        "target": each.target,
        "is_ordered": each.is_ordered,
        "max_attempts": each.max_attempts,
    }

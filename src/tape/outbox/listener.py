"""The listener: the handlers of one process and the worker that delivers events to them."""

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from typing import Final, NoReturn, Protocol

from tape.core.background import background
from tape.core.claim import WORK_LEASE
from tape.core.errors import UsageError
from tape.core.outbox import (
    DEFAULT_RETRY_POLICY,
    Begin,
    HandlerSubscription,
    OutboxRetention,
    RetryPolicy,
    check_generation,
    own_channel,
)
from tape.outbox.database import OutboxWakes, open_outbox
from tape.outbox.handling import DeliveryHandler, EventHandler, Transaction, deadline_of, takes_connection
from tape.outbox.maintenance import apply_retention, keep_registered
from tape.outbox.polling import PolledQueue
from tape.outbox.publisher import own_generation
from tape.settings import Settings
from tape.store.outbox.deliveries import Deliveries
from tape.store.outbox.versions import HandlerVersions
from tape.work.deadline import DEADLINE
from tape.work.outages import Outage, retry_outages
from tape.work.worker import Worker, new_owner

SLOTS: Final = 16
SPARE_CONNECTIONS: Final = 3  # for claiming, settling and renewing leases while every slot holds a connection


class EventListener(Protocol):
    """Delivers the events of a channel to a handler, each at least once."""

    def listen(self, *, channel: str | None = None, handler_name: str, handler: EventHandler) -> None: ...


class OutboxListener:
    """Delivers events to the handlers of one process; it never reads a row of another generation.

    `transaction` opens the connection for handlers that take one: it returns an async context manager over a
    connection of any library, in a transaction that commits with the block. The default is a connection of the
    listener's own pool. With a `retention` the listener also deletes old rows, once an hour.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        generation: int | None = None,
        schema: str = "core",
        listen_url: str | None = None,
        transaction: Transaction | None = None,
        slots: int = SLOTS,
        lease: timedelta = WORK_LEASE,
        retention: OutboxRetention | None = None,
    ) -> None:
        settings = Settings.read(os.environ)
        self._url = url or settings.outbox_url
        self._listen_url = listen_url or settings.listen_url
        self._generation = own_generation() if generation is None else check_generation(generation)
        self._schema = schema
        self._transaction = transaction
        self._slots = slots
        self._lease = lease
        self._retention = retention
        self._subscriptions: dict[str, HandlerSubscription] = {}
        self._functions: dict[str, EventHandler] = {}
        self._policies: dict[str, RetryPolicy] = {}
        self._deadlines: dict[str, timedelta | None] = {}
        self._worker: Worker | None = None
        self._wake: OutboxWakes | None = None
        self._is_stopped = False

    def listen(
        self,
        *,
        channel: str | None = None,
        handler_name: str,
        handler: EventHandler,
        event_types: Sequence[str] = (),
        target: str | None = None,
        ordered: bool = False,
        begin: Begin = "pending",
        retry_policy: RetryPolicy = DEFAULT_RETRY_POLICY,
        deadline: timedelta | None = DEADLINE,
    ) -> None:
        """Adds a handler; it starts with `run`. An attempt that exceeds its deadline, an hour by default, has failed.

        With a deadline of None an attempt may take as long as the worker runs.

        `begin` selects the existing rows that a new handler gets, or that a wider filter adds: "pending" (not yet
        delivered or failed), "now" (none), "all", or those from a position on. All later rows follow.
        """
        if handler_name in self._subscriptions:
            raise UsageError(f"handler {handler_name!r} listens already; give this one a name of its own")
        takes_connection(handler)
        self._deadlines[handler_name] = deadline_of(handler, deadline)
        self._subscriptions[handler_name] = HandlerSubscription(
            handler_name=handler_name,
            generation=self._generation,
            channel=own_channel(channel, self._generation),
            event_types=tuple(event_types),
            target=target,
            is_ordered=ordered,
            begin=begin,
            max_attempts=retry_policy.attempts,
        )
        self._functions[handler_name] = handler
        self._policies[handler_name] = retry_policy

    @property
    def is_listening(self) -> bool:
        """Whether notifications of new rows arrive; if not, only the poll finds them."""
        return self._wake is not None and self._wake.is_listening

    def stop(self) -> None:
        """Stops claiming; `run` returns when all claimed deliveries are settled."""
        self._is_stopped = True
        if self._worker is not None:
            self._worker.stop()

    @property
    def handled(self) -> int:
        """The number of settled deliveries."""
        return 0 if self._worker is None else self._worker.handled

    async def run(self) -> None:
        """Handles events until `stop`; waits for a database that is unavailable."""
        await retry_outages(self._run, "outbox")

    async def _run(self, outage: Outage) -> None:
        async with self._prepared() as worker:
            outage.recovered()
            if not self._is_stopped:
                await worker.run()

    async def run_once(self) -> None:
        """Handles the deliveries that are due now, and those that become due by it."""
        async with self._prepared() as worker:
            await worker.run_once()

    @asynccontextmanager
    async def _prepared(self) -> AsyncIterator[Worker]:
        if not self._subscriptions:
            raise UsageError("a listener needs a handler; call listen(handler_name=..., handler=...) first")
        connections = self._slots + SPARE_CONNECTIONS
        opened = open_outbox(self._url, schema=self._schema, listen_url=self._listen_url, connections=connections)
        async with opened as database:
            subscriptions = list(self._subscriptions.values())
            deliveries = Deliveries(database, subscriptions, self._policies)
            versions = HandlerVersions(database, subscriptions)
            await versions.register()
            queue = PolledQueue(deliveries, is_ordered=any(each.is_ordered for each in subscriptions))
            transaction = self._transaction or database.transaction
            handlers = {
                name: DeliveryHandler(
                    self._functions[name], subscription, deliveries, transaction, self._deadlines[name]
                )
                for name, subscription in self._subscriptions.items()
            }
            self._worker = Worker(queue, handlers, owner=new_owner(), slots=self._slots, lease=self._lease)
            self._wake = database.wake(tuple(sorted({each.channel for each in subscriptions})))
            loops = [partial(_notify, self._wake, queue, self._worker), partial(keep_registered, versions)]
            if self._retention is not None:
                loops.append(partial(apply_retention, database, self._retention))
            async with background(*loops):
                yield self._worker


async def _notify(wake: OutboxWakes, queue: PolledQueue, worker: Worker) -> NoReturn:
    def on_change() -> None:
        queue.notify()
        worker.wake()

    await wake.run(on_change)

"""The sink for the events of a producer that runs in a thread."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from copy import copy
from threading import Condition
from typing import Final, NamedTuple, NoReturn

from tape.bus.journal import Journal, prepare_event
from tape.bus.operations import Receipt
from tape.core.errors import LimitReached, UsageError
from tape.core.event import Entry, Event
from tape.core.ids import RunId, Seq
from tape.core.sequence import MAX_BYTES

MAX_PENDING: Final = 256


class _Pending(NamedTuple):
    event: Event
    receipt: Receipt[Seq]


class RunSink:
    """An `EventSink` for one run, created in the event loop, with back-pressure.

    `emit` may be called from any other thread and keeps the order. It blocks while too much is pending, and raises
    after the run has ended or an append was refused.
    """

    def __init__(self, journal: Journal, run_id: RunId, on_appended: Callable[[int], None]) -> None:
        self.run_id = run_id
        self._journal = journal
        self._on_appended = on_appended
        self._loop = asyncio.get_running_loop()
        self._changed = Condition()
        self._queue: deque[_Pending] = deque()
        self._under_way: Sequence[_Pending] = ()
        self._bytes = 0
        self._emitted = 0
        self._stored = 0
        self._error: Exception | None = None
        self._has_pending = asyncio.Event()
        self._progress = asyncio.Event()

    def emit(self, event: Event) -> Receipt[Seq]:
        """Returns a receipt, which gets the event's seq when it is stored, or the error."""
        event = prepare_event(event)
        if event.run_id != self.run_id:
            raise UsageError(f"the event's run_id {event.run_id!r} does not match {self.run_id!r}")
        pending = _Pending(event, Receipt())
        with self._changed:
            self._changed.wait_for(lambda: self._error is not None or self._has_room(event))
            if self._error is not None:
                raise copy(self._error)
            self._add(pending)
        self._loop.call_soon_threadsafe(self._has_pending.set)
        return pending.receipt

    def end(self, error: Exception) -> None:
        """Accepts no more events; blocked and later calls of `emit` raise this error."""
        with self._changed:
            self._error = self._error or error
            left = [*self._under_way, *self._take()]
        for pending in left:
            pending.receipt.set_exception(copy(self._error))
        self._under_way = ()
        self._progress.set()

    async def drain(self) -> None:
        """Returns when everything emitted so far is stored; raises if it cannot be."""
        while self._error is None and self._stored < self._emitted:
            self._progress.clear()
            await self._progress.wait()
        if self._error is not None:
            raise self._error

    async def run(self) -> NoReturn:
        """Appends pending events; those that arrive during an append go into the next one."""
        while True:
            await self._has_pending.wait()
            self._has_pending.clear()
            with self._changed:
                batch = self._take()
            if batch:
                await self._store(batch)

    def _has_room(self, event: Event) -> bool:
        """Whether all pending events and this one fit into one request."""
        return not self._queue or (len(self._queue) < MAX_PENDING and self._bytes + event.size <= MAX_BYTES)

    def _add(self, pending: _Pending) -> None:
        self._queue.append(pending)
        self._bytes += pending.event.size
        self._emitted += 1

    def _take(self) -> list[_Pending]:
        taken = list(self._queue)
        self._queue.clear()
        self._bytes = 0
        self._changed.notify_all()
        return taken

    async def _store(self, batch: Sequence[_Pending]) -> None:
        self._under_way = batch
        try:
            entries = await self._append([pending.event for pending in batch])
        except Exception as error:  # noqa: BLE001 - the producer's next emit raises it
            self.end(error)
            return
        self._under_way = ()
        self._on_appended(len(entries))
        for pending, entry in zip(batch, entries, strict=True):
            pending.receipt.set_result(entry.seq)
        self._stored += len(entries)
        self._progress.set()

    async def _append(self, events: Sequence[Event]) -> Sequence[Entry]:
        while True:
            try:
                return await self._journal.append(events)
            except LimitReached:
                await self._journal.drain()

"""The one task of a broker: it opens the store, executes operations in order, and renews leases."""

import asyncio
import os
from collections import deque
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from contextvars import Context
from copy import copy
from functools import partial
from threading import get_ident
from typing import Final, NamedTuple, TypeAlias, assert_never

import anyio
import anyio.lowlevel
from anyio.abc import TaskGroup

from tape.bus.journal import Journal
from tape.bus.operations import Barrier, Close, Open, Operation, Operations, Publish, Reap, Receipt, Spawn
from tape.core.errors import LimitReached, RunClosed, RunNotFound, TapeError, Unavailable
from tape.core.event import Entry, Event
from tape.core.ids import RunId, Seq
from tape.core.lease import Lease
from tape.core.ports import Store

OPERATIONS_PER_TURN: Final = 500  # then other tasks of the event loop run
FAILURES: Final = 100  # failures that nobody has retrieved and that `flush` raises


class Backend(NamedTuple):
    """A store and the journal over it."""

    store: Store
    journal: Journal
    is_ephemeral: bool = False


Connect: TypeAlias = Callable[[], AbstractAsyncContextManager[Backend]]


class BrokerState:
    """State that outlives a broker task: queued operations, leased runs, refused runs, counters."""

    def __init__(self) -> None:
        self.producer = os.urandom(16).hex()
        self.operations = Operations()
        self.held: dict[RunId, Open] = {}
        self.refused: dict[RunId, tuple[Open, TapeError]] = {}
        self.failures: deque[Receipt[None] | Receipt[Seq]] = deque(maxlen=FAILURES)
        self.events_published = 0

    def refuse(self, opened: Open, error: TapeError) -> None:
        """Refuses to publish to an incarnation of a run until the run is opened again or closed."""
        self.operations.withdraw(opened)
        self.refused[opened.run_id] = opened, error

    def revoke(self, run_ids: Collection[RunId]) -> None:
        """Gives up runs whose lease is lost, or that no longer exist."""
        for run_id in run_ids:
            self.refuse(self.held.pop(run_id), RunClosed(run_id))

    def check(self, run_id: RunId) -> None:
        """Raises why a run is refused; that counts as retrieving the failure of its opening."""
        if (refusal := self.refused.get(run_id)) is not None:
            opened, error = refusal
            opened.receipt.is_retrieved = True
            raise copy(error)

    def fail(self, receipt: Receipt[None] | Receipt[Seq], error: BaseException) -> None:
        self.failures.append(receipt)
        receipt.set_exception(error)

    def take_failures(self) -> list[BaseException]:
        """Returns and clears the failures that nobody has retrieved."""
        failures, self.failures = self.failures, deque(maxlen=FAILURES)
        unretrieved = [receipt for receipt in failures if not receipt.is_retrieved]
        return [error for receipt in unretrieved if (error := receipt.exception()) is not None]


class BrokerTask:
    """Starts at once in the event loop that creates it; ends by `end` or `leave`, or with the loop."""

    def __init__(self, connect: Connect, state: BrokerState, lease: Lease) -> None:
        self.loop = asyncio.get_running_loop()
        self._thread = get_ident()
        self._connect = connect
        self._state = state
        self._lease = lease
        self._backend: Backend | None = None
        self._error: Exception | None = None
        self._current: Operation | None = None
        self._spawned: set[Spawn] = set()
        self._is_ready = asyncio.Event()
        self._has_work = asyncio.Event()
        self._is_waiting = False
        self._is_ending = False
        # An empty context, so that events of others do not get the trace of the first caller.
        self._task = self.loop.create_task(self._run(), name="tape.broker", context=Context())

    @property
    def is_alive(self) -> bool:
        return not self._task.done() and not self.loop.is_closed()

    @property
    def idle_journal(self) -> Journal | None:
        """The journal, if no operation is queued or running."""
        is_idle = self._is_waiting and not len(self._state.operations)
        return self._backend.journal if self._backend is not None and is_idle else None

    async def backend(self) -> Backend:
        """The store and the journal; waits until they are open."""
        await self._is_ready.wait()
        if self._backend is None:
            raise self._error or _ended()
        return self._backend

    def wake(self) -> None:
        """Wakes the task, from any thread."""
        with suppress(RuntimeError):  # the loop is closed; the next broker task executes it
            if get_ident() == self._thread:
                self._has_work.set()
            else:
                self.loop.call_soon_threadsafe(self._has_work.set)

    def leave(self) -> None:
        """Ends after the queued operations, without waiting; from any thread."""
        self._is_ending = True
        self.wake()

    async def end(self) -> None:
        """Executes what is queued, closes the store, and raises what went wrong."""
        self.leave()
        await asyncio.wait([self._task])
        if self._error is not None:
            raise self._error

    async def _run(self) -> None:
        try:
            async with self._connect() as backend:
                await self._begin(backend)
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._renewing, backend)
                    await self._work(backend, tasks)
                    tasks.cancel_scope.cancel()
        except Exception as error:  # noqa: BLE001 - whatever it is, `backend` and `end` raise it
            self._error = error
        finally:
            self._finish()

    async def _begin(self, backend: Backend) -> None:
        """Renews the leases of an earlier event loop, whose runs may be gone."""
        if self._state.held:
            await self._renew(backend)
        self._backend = backend
        self._is_ready.set()

    def _finish(self) -> None:
        """Fails every receipt that is not done, so that nobody waits forever."""
        if self._backend is not None and self._backend.is_ephemeral:
            self._state.revoke([*self._state.held])
        self._backend = None
        self._is_ready.set()
        started = [*self._spawned] if self._current is None else [self._current, *self._spawned]
        for operation in started:
            if not operation.receipt.done():
                operation.receipt.set_exception(Unavailable("the broker was stopped", "unknown"))
        self._state.operations.fail_pending(self._error or _ended())

    async def _work(self, backend: Backend, tasks: TaskGroup) -> None:
        done = 0
        while True:
            while (operation := self._state.operations.pop()) is not None:
                self._current = operation
                await self._do(operation, backend, tasks)
                self._current = None
                done += 1
                if done % OPERATIONS_PER_TURN == 0:
                    await anyio.lowlevel.checkpoint()
            if self._is_ending:
                return
            done = 0
            self._has_work.clear()
            self._is_waiting = True
            await self._has_work.wait()
            self._is_waiting = False

    async def _do(self, operation: Operation, backend: Backend, tasks: TaskGroup) -> None:
        try:
            match operation:
                case Publish():
                    await self._publish(operation, backend.journal)
                case Spawn():
                    self._spawned.add(operation)
                    tasks.start_soon(self._run_spawned, operation)
                case _:
                    await self._change(operation, backend.journal)
                    operation.receipt.set_result(None)
        except Exception as error:  # noqa: BLE001 - it goes into the receipt, and the other operations still run
            self._state.fail(operation.receipt, error)

    async def _change(self, operation: Open | Close | Reap | Barrier, journal: Journal) -> None:
        match operation:
            case Open():
                await self._open(operation, journal)
            case Close(run_id):
                await self._close(run_id, journal)
            case Reap(run_id):
                with suppress(RunNotFound):
                    await journal.reap(run_id)
            case Barrier():
                pass
            case _:
                assert_never(operation)

    async def _open(self, operation: Open, journal: Journal) -> None:
        run_id = operation.run_id
        try:
            await journal.open_run(run_id, operation.meta, producer=self._state.producer)
        except TapeError as error:
            self._state.refuse(operation, error)
            raise
        self._state.refused.pop(run_id, None)
        self._state.held[run_id] = operation

    async def _close(self, run_id: RunId, journal: Journal) -> None:
        """Closes a run; a run that was refused is not this broker's and only becomes unknown here."""
        self._state.held.pop(run_id, None)
        if self._state.refused.pop(run_id, None) is None:
            with suppress(RunNotFound):
                await journal.close_run(run_id)

    async def _publish(self, operation: Publish, journal: Journal) -> None:
        """Sends an event without waiting for its outcome, so that later events share its commit."""
        self._state.check(operation.event.run_id)
        sent = await _send(journal, operation.event)
        sent.add_done_callback(partial(self._on_published, operation.receipt))

    def _on_published(self, receipt: Receipt[Seq], sent: "asyncio.Future[Sequence[Entry]]") -> None:
        error = asyncio.CancelledError() if sent.cancelled() else sent.exception()
        if error is not None:
            self._state.fail(receipt, error)
            return
        self._state.events_published += 1
        receipt.set_result(sent.result()[0].seq)

    async def _run_spawned(self, operation: Spawn) -> None:
        try:
            await operation.work()
        except Exception as error:  # noqa: BLE001 - it goes into the receipt
            self._state.fail(operation.receipt, error)
        else:
            operation.receipt.set_result(None)
        self._spawned.discard(operation)

    async def _renewing(self, backend: Backend) -> None:
        """Renews this producer's leases, and closes the runs of producers that have not renewed theirs."""
        while True:
            await anyio.sleep(self._lease.renew.total_seconds())
            with suppress(Exception):
                await self._renew(backend)
                await backend.journal.close_silent(self._lease.gone)

    async def _renew(self, backend: Backend) -> None:
        held = dict(self._state.held)
        if not held:
            return
        kept = set(await backend.store.runs.renew(self._state.producer, list(held)))
        lost = [run_id for run_id in held if run_id not in kept]
        self._state.revoke([run_id for run_id in lost if self._state.held.get(run_id) is held[run_id]])


def _ended() -> Unavailable:
    return Unavailable("the broker's event loop has ended")


async def _send(journal: Journal, event: Event) -> "asyncio.Future[Sequence[Entry]]":
    while True:
        try:
            return journal.send(event)
        except LimitReached:
            await journal.drain()

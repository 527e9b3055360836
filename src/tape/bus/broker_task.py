"""The one task behind a broker: it holds the store, does what was asked in order, and renews the leases."""

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

TURN: Final = 500  # operations done before others on the loop get their turn
FAILURES: Final = 100  # failures nobody has heard of that are kept for `flush`


class Backend(NamedTuple):
    """What stands behind a broker: a store, and the journal over it."""

    store: Store
    journal: Journal
    is_ephemeral: bool = False


Connect: TypeAlias = Callable[[], AbstractAsyncContextManager[Backend]]


class BrokerState:
    """What outlives a keeper: the runs this broker holds, those it may not touch, and what it has counted."""

    def __init__(self) -> None:
        self.producer = os.urandom(16).hex()
        self.operations = Operations()
        self.held: dict[RunId, Open] = {}
        self.refused: dict[RunId, tuple[Open, TapeError]] = {}
        self.failures: deque[Receipt[None] | Receipt[Seq]] = deque(maxlen=FAILURES)
        self.events_published = 0

    def refuse(self, opened: Open, error: TapeError) -> None:
        """That life of the run is not this broker's: until it is opened again or closed, nothing is said in it."""
        self.operations.withdraw(opened)
        self.refused[opened.run_id] = opened, error

    def revoke(self, run_ids: Collection[RunId]) -> None:
        """Those runs are not this broker's any more, or not there any more."""
        for run_id in run_ids:
            self.refuse(self.held.pop(run_id), RunClosed(run_id))

    def check(self, run_id: RunId) -> None:
        """Raises why nothing may be said in a run; who opened it has thereby heard of it."""
        if (refusal := self.refused.get(run_id)) is not None:
            opened, error = refusal
            opened.receipt.is_retrieved = True
            raise copy(error)

    def fail(self, receipt: Receipt[None] | Receipt[Seq], error: BaseException) -> None:
        self.failures.append(receipt)
        receipt.set_exception(error)

    def take_failures(self) -> list[BaseException]:
        """What failed without anybody having asked."""
        failures, self.failures = self.failures, deque(maxlen=FAILURES)
        unheard = [receipt for receipt in failures if not receipt.is_retrieved]
        return [error for receipt in unheard if (error := receipt.exception()) is not None]


class BrokerTask:
    """Lives in one event loop; made there, it begins at once and ends when it is told to or with the loop."""

    def __init__(self, connect: Connect, state: BrokerState, lease: Lease) -> None:
        self.loop = asyncio.get_running_loop()
        self._thread = get_ident()
        self._connect = connect
        self._state = state
        self._lease = lease
        self._backend: Backend | None = None
        self._error: Exception | None = None
        self._doing: Operation | None = None
        self._spawned: set[Spawn] = set()
        self._is_ready = asyncio.Event()
        self._is_wanted = asyncio.Event()
        self._is_waiting = False
        self._is_ending = False
        # Its own context: what it says for others is not said in the span of whoever was first.
        self._task = self.loop.create_task(self._run(), name="tape.broker", context=Context())

    @property
    def is_alive(self) -> bool:
        return not self._task.done() and not self.loop.is_closed()

    @property
    def idle_journal(self) -> Journal | None:
        """The journal, if nothing waits to be done before."""
        is_idle = self._is_waiting and not len(self._state.operations)
        return self._backend.journal if self._backend is not None and is_idle else None

    async def backend(self) -> Backend:
        """The store and the journal, as soon as they are open."""
        await self._is_ready.wait()
        if self._backend is None:
            raise self._error or _ended()
        return self._backend

    def wake(self) -> None:
        """There is something to do; from any thread."""
        with suppress(RuntimeError):  # the loop is closed: whoever comes next does it
            if get_ident() == self._thread:
                self._is_wanted.set()
            else:
                self.loop.call_soon_threadsafe(self._is_wanted.set)

    def leave(self) -> None:
        """Does what is left and then ends, while nobody waits for it; from any thread."""
        self._is_ending = True
        self.wake()

    async def end(self) -> None:
        """Does what is left, and lets go of the store."""
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
        except Exception as error:  # noqa: BLE001 - whatever it is, it is told to everybody who asks for the store
            self._error = error
        finally:
            self._finish()

    async def _begin(self, backend: Backend) -> None:
        """What an earlier loop has opened may not be there any more."""
        if self._state.held:
            await self._renew(backend)
        self._backend = backend
        self._is_ready.set()

    def _finish(self) -> None:
        """Nobody is left waiting."""
        if self._backend is not None and self._backend.is_ephemeral:
            self._state.revoke([*self._state.held])
        self._backend = None
        self._is_ready.set()
        begun = [*self._spawned] if self._doing is None else [self._doing, *self._spawned]
        for operation in begun:
            if not operation.receipt.done():
                operation.receipt.set_exception(Unavailable("the broker was stopped", "unknown"))
        self._state.operations.give_up(self._error or _ended())

    async def _work(self, backend: Backend, tasks: TaskGroup) -> None:
        done = 0
        while True:
            while (operation := self._state.operations.take()) is not None:
                self._doing = operation
                await self._do(operation, backend, tasks)
                self._doing = None
                done += 1
                if done % TURN == 0:
                    await anyio.lowlevel.checkpoint()
            if self._is_ending:
                return
            done = 0
            self._is_wanted.clear()
            self._is_waiting = True
            await self._is_wanted.wait()
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
        except Exception as error:  # noqa: BLE001 - it is the asker's, and the others are still to be done
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
        """Closes a run, unless it is not this broker's: then it merely stops refusing it."""
        self._state.held.pop(run_id, None)
        if self._state.refused.pop(run_id, None) is None:
            with suppress(RunNotFound):
                await journal.close_run(run_id)

    async def _publish(self, operation: Publish, journal: Journal) -> None:
        """Sends an event without waiting for what becomes of it, so that those behind it share its commit."""
        self._state.check(operation.event.run_id)
        sent = await _send(journal, operation.event)
        sent.add_done_callback(partial(self._published, operation.receipt))

    def _published(self, receipt: Receipt[Seq], sent: "asyncio.Future[Sequence[Entry]]") -> None:
        error = asyncio.CancelledError() if sent.cancelled() else sent.exception()
        if error is not None:
            self._state.fail(receipt, error)
            return
        self._state.events_published += 1
        receipt.set_result(sent.result()[0].seq)

    async def _run_spawned(self, operation: Spawn) -> None:
        try:
            await operation.work()
        except Exception as error:  # noqa: BLE001 - it is told to who waits for the receipt
            self._state.fail(operation.receipt, error)
        else:
            operation.receipt.set_result(None)
        self._spawned.discard(operation)

    async def _renewing(self, backend: Backend) -> None:
        """Says every so often that its producer lives, and closes the runs of those that have long been silent."""
        while True:
            await anyio.sleep(self._lease.renew.total_seconds())
            with suppress(Exception):
                await self._renew(backend)
                await backend.journal.close_silent(self._lease.gone)

    async def _renew(self, backend: Backend) -> None:
        asked = dict(self._state.held)
        if not asked:
            return
        kept = set(await backend.store.runs.renew(self._state.producer, list(asked)))
        lost = [run_id for run_id in asked if run_id not in kept]
        self._state.revoke([run_id for run_id in lost if self._state.held.get(run_id) is asked[run_id]])


def _ended() -> Unavailable:
    return Unavailable("the broker's event loop has ended")


async def _send(journal: Journal, event: Event) -> "asyncio.Future[Sequence[Entry]]":
    while True:
        try:
            return journal.send(event)
        except LimitReached:
            await journal.drain()

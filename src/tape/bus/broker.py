"""An event broker for runs, over any store."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from threading import Lock
from types import TracebackType
from typing import Any, Self, TypeVar
from weakref import finalize

from tape.bus.broker_task import Backend, BrokerState, BrokerTask, Connect
from tape.bus.journal import check_user_run, prepare_event
from tape.bus.operations import Barrier, Close, Open, Operation, Publish, Reap, Receipt, Spawn
from tape.core.envelope import BrokerMetricsSnapshot, EventEnvelope, envelope_of
from tape.core.errors import BrokerOverflowError, InvalidCursor, Unavailable, UsageError
from tape.core.event import Event, check_run_id
from tape.core.ids import RunId, Seq
from tape.core.lease import Lease
from tape.core.run import LiveRun, RunMeta

_Operation = TypeVar("_Operation", bound=Operation)


class Broker:
    """An `EventBroker` over whatever `connect` opens.

    It can be created anywhere. The first call in an event loop starts its one task; `aclose`, the end of `async with`,
    of the loop or of the broker itself ends the task. Opening, closing, reaping and emitting work in any thread: they
    enter one queue at once, and `flush` waits until they are executed.
    """

    def __init__(self, connect: Connect, *, lease: Lease | None = None) -> None:
        self._connect = connect
        self._lease = lease or Lease()
        self._lock = Lock()
        self._state = BrokerState()
        self._task: BrokerTask | None = None
        self._finalizer: finalize[[], Broker] | None = None
        self._is_closed = False
        self._events_streamed = 0
        self._streams_dropped = 0

    def open_run(self, run_id: RunId, meta: RunMeta | None = None) -> None:
        """Opens a run and leases it to this broker, until it is closed or the lease runs out."""
        self._add(Open(check_user_run(run_id), meta or RunMeta()))

    def close_run(self, run_id: RunId) -> None:
        """Closes a run after all earlier events; a run that is not open stays as it is."""
        self._add(Close(check_user_run(run_id)))

    def reap(self, run_id: RunId) -> None:
        """Reaps a closed run: from now on it streams nothing."""
        self._add(Reap(check_user_run(run_id)))

    def is_open(self, run_id: RunId) -> bool:
        """Whether this broker has opened the run and still holds its lease."""
        return self._state.operations.is_open(run_id)

    async def is_open_remote(self, run_id: RunId) -> bool:
        """Whether any process has the run open."""
        backend = await self._settled()
        head = (await backend.store.runs.heads([check_run_id(run_id)])).get(run_id)
        return head is not None and head.is_open

    async def live_runs(self) -> Sequence[LiveRun]:
        """Every open run of any process."""
        backend = await self._settled()
        return await backend.journal.live_runs()

    async def publish(self, run_id: RunId, event: Event) -> Seq:
        """Appends an event to an open run; returns its seq when it is as durable as the store makes it."""
        prepared = _prepare(run_id, event)
        task = self._started()
        journal = task.idle_journal
        if journal is None:
            return await self._add(Publish(prepared)).receipt
        self._state.check(prepared.run_id)
        (entry,) = await journal.send(prepared)
        self._state.events_published += 1
        return entry.seq

    def emit(self, run_id: RunId, event: Event) -> Receipt[Seq]:
        """Publishes from any thread, without waiting; the receipt gets the seq or the error."""
        return self._add(Publish(_prepare(run_id, event))).receipt

    async def stream(self, run_id: RunId, from_seq: Seq = Seq(0)) -> AsyncGenerator[EventEnvelope, None]:
        """Replays the events of a run from a seq on, then follows it until it is closed.

        An unknown or reaped run has no events; a run that was opened again has those of its new incarnation.
        """
        if from_seq < 0:
            raise InvalidCursor(f"from_seq must be 0 or more, not {from_seq}")
        backend = await self._settled()
        run = await backend.store.runs.find(check_run_id(run_id))
        if run is None or run.is_reaped:
            return
        entries = backend.journal.stream(run_id=run_id, from_seq=max(from_seq, run.head.opened_seq + 1))
        try:
            async for entry in entries:
                self._events_streamed += 1
                yield envelope_of(entry, run_id)
        except BrokerOverflowError:
            self._streams_dropped += 1
            raise
        finally:
            await entries.aclose()

    def start_in(self, loop: asyncio.AbstractEventLoop) -> None:
        """Starts the broker's task in a loop, unless it runs already; from any thread."""
        if self._task is None or not self._task.is_alive:
            loop.call_soon_threadsafe(self._started)

    def spawn(self, work: Callable[[], Coroutine[Any, Any, None]]) -> Receipt[None]:
        """Runs a coroutine in the broker's task group, after all earlier operations."""
        return self._add(Spawn(work)).receipt

    async def flush(self) -> None:
        """Returns when all operations so far are done; raises the first failure that nobody has retrieved."""
        backend = await self._settled()
        await backend.journal.drain()
        self._raise_failure()

    def metrics(self) -> BrokerMetricsSnapshot:
        return BrokerMetricsSnapshot(
            events_published=self._state.events_published,
            events_streamed=self._events_streamed,
            streams_dropped=self._streams_dropped,
            runs_open=self._state.operations.runs_open,
        )

    async def aclose(self) -> None:
        """Executes what is queued and closes the store; the runs stay as they are. The broker cannot be used again."""
        await self._end()
        self._raise_failure()

    async def __aenter__(self) -> Self:
        await self._started().backend()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._end()
        if error is None:
            self._raise_failure()

    async def _settled(self) -> Backend:
        """The store and the journal, after every earlier operation was executed or sent."""
        task = self._started()
        if task.idle_journal is None:
            await self._add(Barrier()).receipt
        return await task.backend()

    async def _end(self) -> None:
        if self._is_closed:
            return
        task = self._started() if len(self._state.operations) else self._task
        self._is_closed = True
        if task is not None and task.is_alive:
            await task.end()

    def _raise_failure(self) -> None:
        for failure in self._state.take_failures():
            raise failure

    def _add(self, operation: _Operation) -> _Operation:
        if self._is_closed:
            raise Unavailable("the broker is closed")
        was_empty = self._state.operations.add(operation)
        task = self._task
        if task is not None and task.is_alive:
            if was_empty:
                task.wake()
        elif _is_in_event_loop():
            self._started()
        return operation

    def _started(self) -> BrokerTask:
        """The task of the calling event loop; a broker has one task at a time."""
        if self._is_closed:
            raise Unavailable("the broker is closed")
        with self._lock:
            if self._task is None or not self._task.is_alive:
                self._task = BrokerTask(self._connect, self._state, self._lease)
                if self._finalizer is not None:
                    self._finalizer.detach()
                self._finalizer = finalize(self, self._task.leave)  # a dropped broker leaves no task behind
            elif self._task.loop is not asyncio.get_running_loop():
                raise UsageError("this broker is at work in another event loop; from other threads, emit")
            return self._task


def _prepare(run_id: RunId, event: Event) -> Event:
    prepared = prepare_event(event)
    if prepared.run_id != run_id:
        raise UsageError(f"the event's run_id {prepared.run_id!r} does not match {run_id!r}")
    return prepared


def _is_in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True

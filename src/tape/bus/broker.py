"""The run-sized door to a journal, over any store."""

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

_Asked = TypeVar("_Asked", bound=Operation)


class Broker:
    """An `EventBroker` over whatever `connect` opens.

    It can be made anywhere and needs no block: the first call in an event loop starts the one task that does the work,
    and `aclose`, the end of an `async with`, of the loop or of the broker itself ends it. Opening, closing, reaping and
    emitting may be done in any thread; they take their place in one order at once, and `flush` waits until they are
    done.
    """

    def __init__(self, connect: Connect, *, lease: Lease | None = None) -> None:
        self._connect = connect
        self._lease = lease or Lease()
        self._lock = Lock()
        self._state = BrokerState()
        self._task: BrokerTask | None = None
        self._when_dropped: finalize[[], Broker] | None = None
        self._is_closed = False
        self._events_streamed = 0
        self._streams_dropped = 0

    def open_run(self, run_id: RunId, meta: RunMeta | None = None) -> None:
        """Opens a run; it is this broker's until it is closed, here or because this process has fallen silent."""
        self._add(Open(check_user_run(run_id), meta or RunMeta()))

    def close_run(self, run_id: RunId) -> None:
        """Ends a run after everything published or emitted before; a run that is not open stays as it is."""
        self._add(Close(check_user_run(run_id)))

    def reap(self, run_id: RunId) -> None:
        """Lets go of a closed run: from here on it streams nothing."""
        self._add(Reap(check_user_run(run_id)))

    def is_open(self, run_id: RunId) -> bool:
        """Whether this broker has opened the run and still holds it."""
        return self._state.operations.is_open(run_id)

    async def is_open_remote(self, run_id: RunId) -> bool:
        """Whether the run is open, whoever has opened it."""
        backend = await self._settled()
        head = (await backend.store.runs.heads([check_run_id(run_id)])).get(run_id)
        return head is not None and head.is_open

    async def live_runs(self) -> Sequence[LiveRun]:
        """Every open run, whoever has opened it."""
        backend = await self._settled()
        return await backend.journal.live_runs()

    async def publish(self, run_id: RunId, event: Event) -> Seq:
        """Appends an event to an open run and returns its place, once it is as durable as the store makes it."""
        said = _said(run_id, event)
        task = self._started()
        journal = task.idle_journal
        if journal is None:
            return await self._add(Publish(said)).receipt
        self._state.check(said.run_id)
        (entry,) = await journal.send(said)
        self._state.events_published += 1
        return entry.seq

    def emit(self, run_id: RunId, event: Event) -> Receipt[Seq]:
        """Publishes from any thread, without waiting: the receipt has the place, or what went wrong."""
        return self._add(Publish(_said(run_id, event))).receipt

    async def stream(self, run_id: RunId, from_seq: Seq = Seq(0)) -> AsyncGenerator[EventEnvelope, None]:
        """The events of a run from a seq on, first what there is, then what comes, to its end.

        A run that is unknown or reaped has none; one that was opened again has those of its new life.
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
        """Begins to work in a loop, called from any thread, unless it is at work already."""
        if self._task is None or not self._task.is_alive:
            loop.call_soon_threadsafe(self._started)

    def spawn(self, work: Callable[[], Coroutine[Any, Any, None]]) -> Receipt[None]:
        """Runs something beside the broker, after what was asked before; it ends with the broker at the latest."""
        return self._add(Spawn(work)).receipt

    async def flush(self) -> None:
        """Until everything asked so far is done; raises the first failure nobody has heard of."""
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
        """Does what is left and lets go of the store; the runs stay as they are. Nothing can be asked afterwards."""
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
        """The store and the journal, after everything asked so far has been done or sent."""
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

    def _add(self, operation: _Asked) -> _Asked:
        if self._is_closed:
            raise Unavailable("the broker is closed")
        was_empty = self._state.operations.add(operation)
        task = self._task
        if task is not None and task.is_alive:
            if was_empty:
                task.wake()
        elif _is_in_a_loop():
            self._started()
        return operation

    def _started(self) -> BrokerTask:
        """The task of the loop that calls; there is one at a time."""
        if self._is_closed:
            raise Unavailable("the broker is closed")
        with self._lock:
            if self._task is None or not self._task.is_alive:
                self._task = BrokerTask(self._connect, self._state, self._lease)
                if self._when_dropped is not None:
                    self._when_dropped.detach()
                self._when_dropped = finalize(self, self._task.leave)  # with nobody to ask, nothing stays
            elif self._task.loop is not asyncio.get_running_loop():
                raise UsageError("this broker is at work in another event loop; from other threads, emit")
            return self._task


def _said(run_id: RunId, event: Event) -> Event:
    """An event as its producer may say it, in the run it names."""
    said = prepare_event(event)
    if said.run_id != run_id:
        raise UsageError(f"the event's run_id {said.run_id!r} does not match {run_id!r}")
    return said


def _is_in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True

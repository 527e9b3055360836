"""The operations that a broker was asked for, in order, from any thread."""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Final, TypeAlias, TypeVar

from tape.core.errors import LimitReached, RunOpen
from tape.core.event import Event
from tape.core.ids import RunId, Seq
from tape.core.run import RunMeta

QUEUE_EVENTS: Final = 100_000
QUEUE_BYTES: Final = 64 << 20

T = TypeVar("T")


class Receipt(Future[T]):
    """The outcome of an operation: `result()` in another thread, `await` in a loop. It cannot be cancelled.

    `is_retrieved` says whether somebody has asked for the outcome; `flush` raises the other failures.
    """

    def __init__(self) -> None:
        super().__init__()
        self.is_retrieved = False

    def cancel(self) -> bool:
        return False

    def result(self, timeout: float | None = None) -> T:
        self.is_retrieved = True
        return super().result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        self.is_retrieved = True
        return super().exception(timeout)

    def __await__(self) -> Generator[Any, None, T]:
        self.is_retrieved = True
        return asyncio.wrap_future(self).__await__()


@dataclass(frozen=True, slots=True, eq=False)
class Open:
    """Opens a run; the object itself identifies the run's new incarnation."""

    run_id: RunId
    meta: RunMeta
    receipt: Receipt[None] = field(default_factory=Receipt)


@dataclass(frozen=True, slots=True, eq=False)
class Close:
    """Closes a run, after all earlier events."""

    run_id: RunId
    receipt: Receipt[None] = field(default_factory=Receipt)


@dataclass(frozen=True, slots=True, eq=False)
class Reap:
    """Reaps a closed run."""

    run_id: RunId
    receipt: Receipt[None] = field(default_factory=Receipt)


@dataclass(frozen=True, slots=True, eq=False)
class Publish:
    """Appends an event to its run."""

    event: Event
    receipt: Receipt[Seq] = field(default_factory=Receipt)


@dataclass(frozen=True, slots=True, eq=False)
class Spawn:
    """Starts a coroutine in the broker's task group."""

    work: Callable[[], Coroutine[Any, Any, None]]
    receipt: Receipt[None] = field(default_factory=Receipt)


@dataclass(frozen=True, slots=True, eq=False)
class Barrier:
    """Does nothing; its receipt is done when all earlier operations are."""

    receipt: Receipt[None] = field(default_factory=Receipt)


Operation: TypeAlias = Open | Close | Reap | Publish | Spawn | Barrier


class Operations:
    """A thread-safe queue; which runs are open is decided when an operation is added."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._queue: deque[Operation] = deque()
        self._open: dict[RunId, Open] = {}
        self._events = 0
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._queue)

    @property
    def runs_open(self) -> int:
        return len(self._open)

    def is_open(self, run_id: RunId) -> bool:
        return run_id in self._open

    def add(self, operation: Operation) -> bool:
        """Appends an operation; whether the queue was empty before."""
        with self._lock:
            self._check(operation)
            self._queue.append(operation)
            return len(self._queue) == 1

    def pop(self) -> Operation | None:
        with self._lock:
            operation = self._queue.popleft() if self._queue else None
            if isinstance(operation, Publish):
                self._events -= 1
                self._bytes -= operation.event.size
            return operation

    def withdraw(self, opened: Open) -> None:
        """Marks that incarnation of the run as not open; a later one stays open."""
        with self._lock:
            if self._open.get(opened.run_id) is opened:
                del self._open[opened.run_id]

    def fail_pending(self, error: Exception) -> None:
        """Fails what waits; opening, closing and reaping stay queued for the next broker task."""
        with self._lock:
            pending, self._queue = self._queue, deque()
            self._queue.extend(operation for operation in pending if isinstance(operation, Open | Close | Reap))
            self._events = self._bytes = 0
        for operation in pending:
            if not isinstance(operation, Open | Close | Reap):
                operation.receipt.set_exception(error)

    def _check(self, operation: Operation) -> None:
        match operation:
            case Open(run_id):
                if run_id in self._open:
                    raise RunOpen(run_id)
                self._open[run_id] = operation
            case Close(run_id):
                self._open.pop(run_id, None)
            case Reap(run_id):
                if run_id in self._open:
                    raise RunOpen(run_id, "reap")
            case Publish(event):
                self._count(event)
            case Spawn() | Barrier():
                pass

    def _count(self, event: Event) -> None:
        if self._events >= QUEUE_EVENTS or self._bytes >= QUEUE_BYTES:
            raise LimitReached(f"{self._events:,} events wait to be published already; come back later")
        self._events += 1
        self._bytes += event.size

"""The functions of one worker that wait for their effects to be dispatched."""

from collections.abc import Iterator
from contextlib import contextmanager

import anyio

from tape.sdk.durable.errors import Interrupted


class OutboxWaits:
    """How many functions are running, and how many waits have begun and are active; `leave` interrupts those."""

    def __init__(self) -> None:
        self.functions = 0
        self.begun = 0
        self._count = 0
        self._is_left = anyio.Event()

    @property
    def all_waiting(self) -> bool:
        """Whether every function is waiting."""
        return 0 < self.functions <= self._count

    @contextmanager
    def function(self) -> Iterator[None]:
        self.functions += 1
        try:
            yield
        finally:
            self.functions -= 1

    @contextmanager
    def wait(self) -> Iterator[anyio.Event]:
        """Counts a wait; the event is set to interrupt it."""
        self.begun += 1
        self._count += 1
        try:
            yield self._is_left
        finally:
            self._count -= 1

    def leave(self) -> None:
        """Interrupts every waiting function; the next worker executes its run again."""
        self._is_left.set()
        self._is_left = anyio.Event()


async def sleep_unless_interrupted(is_left: anyio.Event, seconds: float) -> None:
    """Sleeps; raises Interrupted if the wait is interrupted."""
    with anyio.move_on_after(seconds):
        await is_left.wait()
        raise Interrupted

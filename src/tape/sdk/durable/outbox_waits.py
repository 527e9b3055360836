"""The functions of one worker that wait for somebody to carry out their effects."""

from collections.abc import Iterator
from contextlib import contextmanager

import anyio

from tape.sdk.durable.errors import Interrupted


class OutboxWaits:
    """How many functions there are, and how many waits were begun and go on; `leave` ends those that go on now."""

    def __init__(self) -> None:
        self.functions = 0
        self.begun = 0
        self._count = 0
        self._is_left = anyio.Event()

    @property
    def all_waiting(self) -> bool:
        """Whether every function waits."""
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
        """What is set when this wait is to end."""
        self.begun += 1
        self._count += 1
        try:
            yield self._is_left
        finally:
            self._count -= 1

    def leave(self) -> None:
        """Interrupts every function that waits; whoever takes its run waits on."""
        self._is_left.set()
        self._is_left = anyio.Event()


async def sleep_unless_interrupted(is_left: anyio.Event, seconds: float) -> None:
    """A while, unless the wait is to end."""
    with anyio.move_on_after(seconds):
        await is_left.wait()
        raise Interrupted

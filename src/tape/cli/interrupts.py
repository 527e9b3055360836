"""One signal ends a command, whatever it is doing: none comes too early, and none is lost."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NoReturn, TypeVar

if TYPE_CHECKING:
    from types import FrameType

T = TypeVar("T")

GRACE_S: Final = 5.0
SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """What becomes of a command that is told to end: the first signal asks it to, the second does not wait.

    Nor does anybody wait for ever: what has not ended by itself within a few seconds is ended.
    """

    def __init__(self) -> None:
        self._received: int | None = None
        self._end: Callable[[], object] = self._exit
        self._is_listening = False

    @property
    def code(self) -> int:
        """What a command that was told to end ends with."""
        return 128 + (self._received or signal.SIGINT)

    def listen(self) -> None:
        """Hears signals from now on, except those that are to be ignored; while nothing has begun, it just ends.

        Python's own way is an exception, which is lost where there is nobody to take it, as between two imports.
        """
        self._is_listening = True
        sys.unraisablehook = _report_unless_interrupted
        signal.signal(signal.SIGALRM, lambda number, frame: self._exit())
        for number in SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._receive)

    @contextmanager
    def raising(self) -> Iterator[None]:
        """A block in which a signal is raised, so that what was begun is cleaned up."""
        try:
            self._end = _interrupt
            yield
        except KeyboardInterrupt:
            self._received = self._received or signal.SIGINT
            raise
        finally:
            self._end = self._exit

    def end(self, code: int) -> NoReturn:
        """Ends the process; a thread that was left behind holds it up for a moment, and not at all once it was told."""
        if self._received is not None or any(map(_is_left, threading.enumerate())):
            os._exit(code)
        sys.exit(code)

    def run(self, main: Callable[[], Awaitable[T]], *, use_uvloop: bool = False) -> T:
        """Runs a command on a loop, which is loaded only now, so that help comes at once."""
        import anyio

        async def run_cancellable() -> T:
            return await self._run(main)

        with self._cancelling():
            return anyio.run(run_cancellable, backend_options={"use_uvloop": use_uvloop})
        raise AssertionError("who is interrupted does not come here")

    @contextmanager
    def _cancelling(self) -> Iterator[None]:
        """A block in which a signal cancels: in a loop an exception would hit whichever task is at work."""
        before, self._end = self._end, _note
        try:
            if self._received is None:
                yield
        except Exception:
            if self._received is None:
                raise
        finally:
            self._end = before
            if self._is_listening:
                self.listen()  # a loop that has heard signals itself leaves Python's own way behind
        if self._received is not None:
            raise KeyboardInterrupt

    async def _run(self, main: Callable[[], Awaitable[T]]) -> T:
        from asyncio import get_running_loop

        import anyio
        import click

        loop = get_running_loop()
        with anyio.CancelScope() as scope:  # it cancels again and again, where a task is cancelled only once
            try:
                self._end = lambda: loop.call_soon_threadsafe(scope.cancel)
                if self._received is not None:
                    scope.cancel()
                return await main()
            finally:
                self._end = _note
        raise click.Abort

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if self._received is not None:
            self._exit()
        self._received = number
        signal.setitimer(signal.ITIMER_REAL, GRACE_S)
        self._end()

    def _exit(self) -> None:
        os._exit(self.code)


def _is_left(thread: threading.Thread) -> bool:
    """Whether Python would wait for it, for ever if need be."""
    if thread is threading.main_thread() or thread.daemon:
        return False
    thread.join(GRACE_S)
    return thread.is_alive()


def _interrupt() -> None:
    raise KeyboardInterrupt


def _note() -> None:
    return


def _report_unless_interrupted(unraisable: sys.UnraisableHookArgs) -> None:
    if not issubclass(unraisable.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)


interrupts: Final = Interrupts()

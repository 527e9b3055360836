"""Ends a command on SIGINT or SIGTERM, whatever it is doing: no signal comes too early or is lost."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Final, NoReturn, TypeVar

from tape.work.stop_signals import StopSignals

T = TypeVar("T")

GRACE_S: Final = 5.0


class Interrupts:
    """The first signal asks the command to end, the second ends the process.

    A command that has not ended a few seconds after the first signal is ended too.
    """

    def __init__(self) -> None:
        self._signals = StopSignals(self._receive, lambda number: self._exit())
        self._end: Callable[[], object] = self._exit

    @property
    def code(self) -> int:
        """The exit code of a command that a signal has ended."""
        return 128 + (self._signals.received or signal.SIGINT)

    def listen(self) -> None:
        """Handles signals from now on; until a command has begun, one ends the process.

        Python's own handler raises an exception, which is lost where no code catches it, as between two imports.
        """
        sys.unraisablehook = _report_unless_interrupted
        signal.signal(signal.SIGALRM, lambda number, frame: self._exit())
        self._signals.install()

    @contextmanager
    def raising(self) -> Iterator[None]:
        """In this block a signal raises KeyboardInterrupt, so that `finally` clauses run."""
        try:
            self._end = _interrupt
            yield
        except KeyboardInterrupt:
            self._signals.received = self._signals.received or signal.SIGINT
            raise
        finally:
            self._end = self._exit

    def end(self, code: int) -> NoReturn:
        """Ends the process; waits for threads that still run, but only briefly, and not at all after a signal."""
        if self._signals.received is not None or any(map(_is_left, threading.enumerate())):
            os._exit(code)
        sys.exit(code)

    def run(self, main: Callable[[], Awaitable[T]], *, use_uvloop: bool = False) -> T:
        """Runs a command on an event loop, which is imported only now, so that --help is fast."""
        import anyio

        async def run_cancellable() -> T:
            return await self._run(main)

        with self._cancelling():
            return anyio.run(run_cancellable, backend_options={"use_uvloop": use_uvloop})
        raise AssertionError("an interrupted command raises")

    @contextmanager
    def _cancelling(self) -> Iterator[None]:
        """In this block a signal cancels: in an event loop an exception would hit whichever task is running."""
        before, self._end = self._end, _ignore
        try:
            if self._signals.received is None:
                yield
        except Exception:
            if self._signals.received is None:
                raise
        finally:
            self._end = before
        if self._signals.received is not None:
            raise KeyboardInterrupt

    async def _run(self, main: Callable[[], Awaitable[T]]) -> T:
        from asyncio import get_running_loop

        import anyio
        import click

        loop = get_running_loop()
        with anyio.CancelScope() as scope:  # a scope cancels its task again and again; task.cancel() does so once
            try:
                self._end = lambda: loop.call_soon_threadsafe(scope.cancel)
                if self._signals.received is not None:
                    scope.cancel()
                return await main()
            finally:
                self._end = _ignore
        raise click.Abort

    def _receive(self, number: int) -> None:
        signal.setitimer(signal.ITIMER_REAL, GRACE_S)
        self._end()

    def _exit(self) -> None:
        os._exit(self.code)


def _is_left(thread: threading.Thread) -> bool:
    """Whether Python would wait for this thread when the process ends."""
    if thread is threading.main_thread() or thread.daemon:
        return False
    thread.join(GRACE_S)
    return thread.is_alive()


def _interrupt() -> None:
    raise KeyboardInterrupt


def _ignore() -> None:
    return


def _report_unless_interrupted(unraisable: sys.UnraisableHookArgs) -> None:
    if not issubclass(unraisable.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)


interrupts: Final = Interrupts()

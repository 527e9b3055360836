"""Runs a worker until a signal, and ends the process when the grace period is over, whatever a handler does."""

import asyncio
import os
import signal
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import TypeVar

from tape.settings import Settings
from tape.telemetry import log
from tape.work.child_process import exit_with_children
from tape.work.handler_tasks import has_detached
from tape.work.stop_signals import StopSignals
from tape.work.threads import exit_now

T = TypeVar("T")


async def until_signal(run: Callable[[], Awaitable[T]], stop: Callable[[], None]) -> T:
    """Returns what `run` returns. The first signal calls `stop`, the second ends the process.

    If `run` has not returned TAPE_GRACE after the first signal, the process ends; the leases of its tasks run out.
    """
    with _stopping(stop, Settings.read(os.environ).grace):
        return await run()
    raise AssertionError("a signal handler suppresses no error")


@contextmanager
def _stopping(stop: Callable[[], None], grace: timedelta) -> Iterator[None]:
    """Handles signals in this block, and measures the grace period in a thread: a handler may block the loop.

    If the block leaves handlers running, both go on until the loop is closed, because those handlers may delay it.
    """
    loop, requested, over = asyncio.get_running_loop(), threading.Event(), threading.Event()

    def receive(number: int, act: Callable[[], object]) -> None:
        if loop.is_closed():
            signals.restore()
            signal.raise_signal(number)
        else:
            act()

    def request(number: int) -> None:
        requested.set()
        receive(number, lambda: loop.call_soon_threadsafe(stop))

    def watch() -> None:
        requested.wait()
        if not over.wait(grace.total_seconds()) and not loop.is_closed():
            exit_now(128 + signal.SIGTERM, partial(log.warning, "worker.grace_expired", grace_s=grace.total_seconds()))

    signals = StopSignals(request, lambda number: receive(number, partial(exit_with_children, 128 + number)))
    signals.install()
    threading.Thread(target=watch, name="tape shutdown", daemon=True).start()
    try:
        yield
    finally:
        if not (requested.is_set() and has_detached()):
            over.set()
            requested.set()
            signals.restore()

"""Working until a signal says to leave, and leaving within a grace whatever a handler does."""

import asyncio
import os
import signal
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import Final, TypeVar

from tape.settings import Settings
from tape.telemetry import log
from tape.work.child_process import exit_with_children
from tape.work.handler_tasks import has_left
from tape.work.threads import exit_now

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)

T = TypeVar("T")


async def until_signal(run: Callable[[], Awaitable[T]], stop: Callable[[], None]) -> T:
    """Runs until it ends, which the first signal asks of it with `stop`; the second one does not wait.

    What has not ended after TAPE_GRACE is left to its lease, and the process ends.
    """
    with _leaving(stop, Settings.read(os.environ).grace):
        return await run()
    raise AssertionError("a receiver of signals swallows nothing")


@contextmanager
def _leaving(stop: Callable[[], None], grace: timedelta) -> Iterator[None]:
    """Handles signals in this block.

    They are not handled by the event loop, and a thread keeps the time: a handler may block the loop. If handlers were
    left behind, both go on until the loop is closed: what a handler holds may hold up what is closed before.
    """
    loop, told, over = asyncio.get_running_loop(), threading.Event(), threading.Event()

    def leave(number: int, _: object) -> None:
        if loop.is_closed():
            signal.signal(number, before[signal.Signals(number)])
            signal.raise_signal(number)
            return
        if told.is_set():
            exit_with_children(128 + number)
        told.set()
        loop.call_soon_threadsafe(stop)

    def watch() -> None:
        told.wait()
        if not over.wait(grace.total_seconds()) and not loop.is_closed():
            exit_now(128 + signal.SIGTERM, partial(log.warning, "worker.grace_expired", grace_s=grace.total_seconds()))

    before = {number: signal.signal(number, leave) for number in SIGNALS}
    threading.Thread(target=watch, name="tape leaving", daemon=True).start()
    try:
        yield
    finally:
        if not (told.is_set() and has_left()):
            over.set()
            told.set()
            for number, handler in before.items():
                signal.signal(number, handler)

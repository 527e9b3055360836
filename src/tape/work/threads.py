"""Calls plain functions in threads. A thread that was detached does not keep the process alive."""

import logging
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn

import anyio

from tape.telemetry import log
from tape.work.child_process import exit_with_children

WRITE_S: Final = 1.0  # the reader of the output may be gone
_DETACHED: Final[set[threading.Thread]] = set()
_LOCK: Final = threading.Lock()


class _Call:
    """A call in a thread; it logs when it is detached, and when it ends after that."""

    def __init__(self, function: Callable[[], Any], log_fields: Mapping[str, object]) -> None:
        self._function = function
        self._log_fields = log_fields
        self._began = time.monotonic()
        self._thread: threading.Thread | None = None
        self._is_detached = False

    def __call__(self) -> Any:
        with _LOCK:
            self._thread = threading.current_thread()
        try:
            return self._function()
        finally:
            self._end()

    def detach(self) -> None:
        """Stops waiting for the call: a thread cannot be ended."""
        with _LOCK:
            if self._thread is None:
                return
            self._is_detached = True
            is_first = not _DETACHED
            _DETACHED.add(self._thread)
        log.warning("task.thread_detached", duration_s=self._duration_s, **self._log_fields)
        if is_first:
            threading.Thread(target=_end_process, name="tape exit", daemon=True).start()

    def _end(self) -> None:
        with _LOCK:
            thread, self._thread = self._thread, None
            is_detached = self._is_detached
            if thread is not None:
                _DETACHED.discard(thread)
        if is_detached:
            log.warning("task.thread_ended", duration_s=self._duration_s, **self._log_fields)

    @property
    def _duration_s(self) -> float:
        return round(time.monotonic() - self._began, 3)


async def call_in_thread(
    function: Callable[[], Any], threads: anyio.CapacityLimiter | None, log_fields: Mapping[str, object]
) -> Any:
    """Calls a plain function; on cancellation the thread is detached, and another may start in its place."""
    call = _Call(function, log_fields)
    try:
        return await anyio.to_thread.run_sync(call, abandon_on_cancel=True, limiter=threads)
    except BaseException:
        call.detach()
        raise


def _end_process() -> None:
    """Waits for the end of the program, and ends the process if only detached threads would keep it alive."""
    threading.main_thread().join()
    for thread in threading.enumerate():
        if not thread.daemon and thread is not threading.main_thread() and thread not in _DETACHED:
            thread.join()
    with _LOCK:
        is_held = any(thread.is_alive() for thread in _DETACHED)
    if is_held:
        exit_now(exit_status())


def exit_status() -> int:
    """The status of a program at its end: 1 after an uncaught error."""
    return 1 if getattr(sys, "last_value", None) is not None else 0


def exit_now(status: int, before_flush: Callable[[], object] = bool) -> NoReturn:
    """Ends the process without waiting for any thread; flushes logs and output within WRITE_S."""
    flush = threading.Thread(target=_flush, args=(before_flush,), daemon=True)
    flush.start()
    flush.join(WRITE_S)
    exit_with_children(status)


def _flush(before_flush: Callable[[], object]) -> None:
    before_flush()
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()

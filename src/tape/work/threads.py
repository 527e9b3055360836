"""Plain functions in threads; a thread that nobody waits for any more does not keep the process alive."""

import logging
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn

import anyio

from tape.telemetry import log
from tape.work.child_process import exit_with_children

WRITE_S: Final = 1.0  # nobody may read what is written
_LEFT: Final[set[threading.Thread]] = set()
_LOCK: Final = threading.Lock()


class _Call:
    """A call in a thread; once it is left, the log says so and says when it ends."""

    def __init__(self, function: Callable[[], Any], facts: Mapping[str, object]) -> None:
        self._function = function
        self._facts = facts
        self._began = time.monotonic()
        self._thread: threading.Thread | None = None
        self._is_left = False

    def __call__(self) -> Any:
        with _LOCK:
            self._thread = threading.current_thread()
        try:
            return self._function()
        finally:
            self._end()

    def leave(self) -> None:
        """Nobody waits for it any more, and a thread cannot be ended."""
        with _LOCK:
            if self._thread is None:
                return
            self._is_left = True
            is_first = not _LEFT
            _LEFT.add(self._thread)
        log.warning("task.thread_detached", duration_s=self._duration_s, **self._facts)
        if is_first:
            threading.Thread(target=_end_process, name="tape exit", daemon=True).start()

    def _end(self) -> None:
        with _LOCK:
            thread, self._thread = self._thread, None
            is_left = self._is_left
            if thread is not None:
                _LEFT.discard(thread)
        if is_left:
            log.warning("task.thread_ended", duration_s=self._duration_s, **self._facts)

    @property
    def _duration_s(self) -> float:
        return round(time.monotonic() - self._began, 3)


async def call_in_thread(
    function: Callable[[], Any], threads: anyio.CapacityLimiter | None, facts: Mapping[str, object]
) -> Any:
    """What a plain function returns; when this is cancelled, its thread is left to itself and its place is free."""
    call = _Call(function, facts)
    try:
        return await anyio.to_thread.run_sync(call, abandon_on_cancel=True, limiter=threads)
    except BaseException:
        call.leave()
        raise


def _end_process() -> None:
    """Waits for the program's end, and ends the process then if only threads that were left would keep it alive."""
    threading.main_thread().join()
    for thread in threading.enumerate():
        if not thread.daemon and thread is not threading.main_thread() and thread not in _LEFT:
            thread.join()
    with _LOCK:
        is_kept = any(thread.is_alive() for thread in _LEFT)
    if is_kept:
        exit_now(exit_status())


def exit_status() -> int:
    """That of a program at its end: 1 after an error that nobody caught."""
    return 1 if getattr(sys, "last_value", None) is not None else 0


def exit_now(status: int, say: Callable[[], object] = bool) -> NoReturn:
    """Ends the process without waiting for any thread; what was logged and printed is written out, if it can be."""
    writing = threading.Thread(target=_write_out, args=(say,), daemon=True)
    writing.start()
    writing.join(WRITE_S)
    exit_with_children(status)


def _write_out(say: Callable[[], object]) -> None:
    say()
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()

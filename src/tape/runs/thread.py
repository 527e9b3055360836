"""Runs a call that may take for ever in its own thread."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from threading import Thread


async def run_in_thread(call: Callable[[], object]) -> None:
    """Waits for a call in its own thread; on cancellation the thread goes on, but does not keep the process alive.

    The shared thread pool would wait for its threads at the end of the process.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def settle(error: Exception | None) -> None:
        if done.done():
            return
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)

    def work() -> None:
        error: Exception | None = None
        try:
            call()
        except BaseException as raised:  # noqa: BLE001 - it is raised where the call is waited for
            error = _raisable(raised)
        with suppress(RuntimeError):  # the loop is closed, so no one waits
            loop.call_soon_threadsafe(settle, error)

    Thread(target=work, name="tape.producer", daemon=True).start()
    await done


def _raisable(raised: BaseException) -> Exception:
    """The error, or a RuntimeError for one that would end a generator, the thread or the process."""
    if isinstance(raised, Exception) and not isinstance(raised, StopIteration):
        return raised
    error = RuntimeError(f"it raised {type(raised).__name__}")
    error.__cause__ = raised
    return error

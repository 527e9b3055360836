"""A thread for what may take for ever."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from threading import Thread


async def run_in_thread(call: Callable[[], object]) -> None:
    """Waits for a call in a thread of its own; who is cancelled leaves it behind, and the process does not wait for it.

    The pool that short calls share waits for its threads when the process ends.
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
        with suppress(RuntimeError):  # the loop has ended, and nobody waits
            loop.call_soon_threadsafe(settle, error)

    Thread(target=work, name="tape.producer", daemon=True).start()
    await done


def _raisable(raised: BaseException) -> Exception:
    """What a call raised, unless it is meant to end something else: a generator, the thread or the process."""
    if isinstance(raised, Exception) and not isinstance(raised, StopIteration):
        return raised
    error = RuntimeError(f"it raised {type(raised).__name__}")
    error.__cause__ = raised
    return error

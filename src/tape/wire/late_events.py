"""Makes gRPC safe in a program that runs one event loop after another.

grpc.aio has one completion queue for all loops of a process: any loop that runs takes an event from it and passes it on
to the loop of the event's call. The events of a cancelled call come later than its cancellation, and one that comes
after its loop was closed raises in the loop that took it. Closing a channel cannot wait for the last of them, because
gRPC does not show when the status of a cancelled stream has come.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final

GRPC: Final = "grpc._cython.cygrpc"


def accept_late_events() -> None:
    """The running loop accepts events of gRPC after it is closed; until then its methods are as they were."""
    loop: Any = asyncio.get_running_loop()
    if not isinstance(loop.close, LoopClose):
        loop.close = LoopClose(loop)


class LoopClose:
    """A loop's `close`, after which an event of gRPC only frees what gRPC holds for it."""

    def __init__(self, loop: Any) -> None:
        self._loop = loop
        self._close = loop.close
        self._call_soon = loop.call_soon_threadsafe

    def __call__(self) -> None:
        self._loop.call_soon_threadsafe = self._call_or_free
        self._close()

    def _call_or_free(self, callback: Callable[..., object], *args: Any, **options: Any) -> Any:
        try:
            return self._call_soon(callback, *args, **options)
        except RuntimeError:
            if not self._loop.is_closed() or getattr(callback, "__module__", None) != GRPC:
                raise
            return callback(*args)

"""The event loop of a program without async, in its own thread; a forked process has no such thread."""

import os
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, AbstractContextManager, ExitStack, contextmanager
from threading import Thread
from typing import TypeVar, TypeVarTuple

import anyio
from anyio.from_thread import BlockingPortal

from tape.core.errors import UsageError

A = TypeVarTuple("A")
T = TypeVar("T")


class Portal:
    """Runs functions on the loop and waits for them, in the process that opened it.

    It holds no generator: a forked process would close it during garbage collection, and wait for the loop.
    """

    def __init__(self) -> None:
        self._process = os.getpid()
        opened: Future[BlockingPortal] = Future()
        self._thread = Thread(target=_run, args=(opened,), name="tape portal", daemon=True)
        self._thread.start()
        self._portal = opened.result()

    @property
    def is_here(self) -> bool:
        return os.getpid() == self._process

    def call(self, function: Callable[[*A], Awaitable[T]], *args: *A) -> T:
        if not self.is_here:
            raise UsageError(
                f"this connection was opened in process {self._process}, from which this one was forked; "
                "open another one here"
            )
        return self._portal.call(function, *args)

    def enter(self, block: AbstractAsyncContextManager[T]) -> AbstractContextManager[T]:
        """The block, entered and left on the loop."""
        return self._portal.wrap_async_context_manager(block)

    def stop(self) -> None:
        self._portal.call(self._portal.stop, True)
        self._thread.join()


@contextmanager
def entered(block: AbstractAsyncContextManager[T]) -> Iterator[tuple[Portal, T]]:
    """An async block and its loop; a process that was forked meanwhile leaves both to its parent."""
    portal = Portal()
    with ExitStack() as stack:
        stack.callback(portal.stop)
        value = stack.enter_context(portal.enter(block))
        try:
            yield portal, value
        finally:
            if not portal.is_here:
                stack.pop_all()


def _run(opened: "Future[BlockingPortal]") -> None:
    try:
        anyio.run(_serve, opened)
    except BaseException as error:
        if opened.done():
            raise
        opened.set_exception(error)


async def _serve(opened: "Future[BlockingPortal]") -> None:
    async with BlockingPortal() as portal:
        opened.set_result(portal)
        await portal.sleep_until_stopped()

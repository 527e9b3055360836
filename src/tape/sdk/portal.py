"""The event loop of a program without async, in a thread of its own; a forked process does not have that thread."""

import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, ExitStack, contextmanager
from typing import TypeVar, TypeVarTuple

from anyio.from_thread import BlockingPortal, start_blocking_portal

from tape.core.errors import UsageError

A = TypeVarTuple("A")
T = TypeVar("T")


class Portal:
    """Runs functions on the loop and waits for them, in the process that has opened it."""

    def __init__(self, portal: BlockingPortal) -> None:
        self._portal = portal
        self._process = os.getpid()

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


@contextmanager
def entered(block: AbstractAsyncContextManager[T]) -> Iterator[tuple[Portal, T]]:
    """An async block and the loop it runs on; a process that was forked meanwhile leaves both to its parent."""
    with ExitStack() as stack:
        inner = stack.enter_context(start_blocking_portal())
        value = stack.enter_context(inner.wrap_async_context_manager(block))
        portal = Portal(inner)
        try:
            yield portal, value
        finally:
            if not portal.is_here:
                stack.pop_all()

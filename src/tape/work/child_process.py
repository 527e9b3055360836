"""Child processes, started so that the threads of libraries cannot harm them.

At a fork, libraries with threads of their own run handlers that may abort the child or confuse the parent; gRPC does
both. `subprocess` starts a program with vfork, which runs no handlers, as long as neither another user nor a
preexec_fn is asked for. uvloop forks. So a child is started by `subprocess` in a thread, whatever the event loop is.
"""

import os
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from subprocess import PIPE, CompletedProcess, Popen
from threading import Lock
from typing import IO, Final, NoReturn, TypeVar, TypeVarTuple

import anyio
from anyio import to_thread

POLL_S: Final = 0.02
_RUNNING: Final[set[Popen[bytes]]] = set()

A = TypeVarTuple("A")
T = TypeVar("T")


class ChildProcess:
    """A running program; reading from it and writing to it may be cancelled."""

    def __init__(self, process: Popen[bytes]) -> None:
        self._process = process
        self._pipes = _Pipes(process)

    async def write(self, data: bytes) -> None:
        """Everything, at once; nothing if the program does not listen any more."""
        with suppress(BrokenPipeError):
            await self._in_thread(_write, _pipe(self._process.stdin), data)

    async def read_line(self, limit: int) -> bytes:
        """The next line with its end; without one if it is longer than the limit, or the last; empty at the end."""
        return await self._in_thread(_pipe(self._process.stdout).readline, limit)

    async def communicate(self, data: bytes) -> tuple[bytes, bytes]:
        """What it has written to its output and to its errors when it has ended."""
        return await self._in_thread(self._process.communicate, data)

    async def wait(self) -> int:
        """Its exit code; minus the number of the signal that ended it."""
        return await to_thread.run_sync(self._process.wait, abandon_on_cancel=True)

    async def terminate(self, grace_s: float) -> None:
        """Asks it and the processes that it has started to end, and kills what is left after so long."""
        with suppress(ProcessLookupError), anyio.move_on_after(grace_s):
            os.killpg(self._process.pid, signal.SIGTERM)
            await self.wait()
            while True:
                os.killpg(self._process.pid, 0)
                await anyio.sleep(POLL_S)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        await self.wait()
        self._pipes.close()

    async def _in_thread(self, function: Callable[[*A], T], *args: *A) -> T:
        """Waits for a thread that uses the pipes; a cancelled one is left, and ends with them."""
        return await to_thread.run_sync(partial(self._pipes.use, function, *args), abandon_on_cancel=True)


class _Pipes:
    """The pipes of a child, closed when nobody uses them any more.

    A program that the child has started may hold them open: a thread that still reads then would read from whatever
    gets the number of a pipe that was closed under it.
    """

    def __init__(self, process: Popen[bytes]) -> None:
        self._streams = [stream for stream in (process.stdin, process.stdout, process.stderr) if stream is not None]
        self._lock = Lock()
        self._users = 0
        self._is_closing = False

    def use(self, function: Callable[[*A], T], *args: *A) -> T:
        with self._lock:
            self._users += 1
        try:
            return function(*args)
        finally:
            self._leave()

    def close(self) -> None:
        with self._lock:
            self._is_closing = True
        self._close_unused()

    def _leave(self) -> None:
        with self._lock:
            self._users -= 1
        self._close_unused()

    def _close_unused(self) -> None:
        with self._lock:
            if self._is_closing and not self._users:
                for stream in self._streams:
                    with suppress(BrokenPipeError):
                        stream.close()


@asynccontextmanager
async def open_child(
    command: Sequence[str], *, grace_s: float = 0.0, stderr: int = PIPE
) -> AsyncIterator[ChildProcess]:
    """Starts a program in a process group of its own; the whole group is gone at the end of the block."""
    process = await to_thread.run_sync(_start, command, stderr)
    child = ChildProcess(process)
    try:
        yield child
    finally:
        with anyio.CancelScope(shield=True):
            await child.terminate(grace_s)
            _RUNNING.discard(process)


async def run_child(command: Sequence[str], data: bytes = b"", *, stderr: int = PIPE) -> CompletedProcess[bytes]:
    """Runs a program to its end; a cancelled one is killed."""
    async with open_child(command, stderr=stderr) as child:
        output, errors = await child.communicate(data)
        return CompletedProcess(command, await child.wait(), output, errors)


def exit_with_children(status: int) -> NoReturn:
    """Ends this process at once, and the children with it: nobody would end them any more."""
    for process in tuple(_RUNNING):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    os._exit(status)


def _start(command: Sequence[str], stderr: int) -> Popen[bytes]:
    process = Popen(command, stdin=PIPE, stdout=PIPE, stderr=stderr, start_new_session=True)
    _RUNNING.add(process)
    return process


def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None, "every child has pipes"
    return stream


def _write(stream: IO[bytes], data: bytes) -> None:
    stream.write(data)
    stream.flush()

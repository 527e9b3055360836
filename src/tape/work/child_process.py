"""Child processes, started so that the threads of libraries cannot harm them.

At a fork, libraries that have threads run hooks which may abort the child or break the parent; gRPC does both.
`subprocess` starts a program with vfork, which runs no hooks, unless another user or a preexec_fn is given. uvloop
forks. So `subprocess` starts each child in a thread, whatever the event loop is.
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
    """A running program. A caller may cancel a read or a write."""

    def __init__(self, process: Popen[bytes]) -> None:
        self._process = process
        self._pipes = _Pipes(process)

    async def write(self, data: bytes) -> None:
        """Writes all the data; does nothing if the program has closed its input."""
        with suppress(BrokenPipeError):
            await self._in_thread(_write, _pipe(self._process.stdin), data)

    async def read_line(self, limit: int) -> bytes:
        """The next line with its newline. A longer line is cut at the limit; at the end of the output it is empty."""
        return await self._in_thread(_pipe(self._process.stdout).readline, limit)

    async def communicate(self, data: bytes) -> tuple[bytes, bytes]:
        """Writes the data, waits for the end, and returns standard output and standard error."""
        return await self._in_thread(self._process.communicate, data)

    async def wait(self) -> int:
        """Returns the exit code, or minus the number of the signal that ended the program."""
        return await to_thread.run_sync(self._process.wait, abandon_on_cancel=True)

    async def terminate(self, grace_s: float) -> None:
        """Sends SIGTERM to the process group, and SIGKILL to what is left of it after `grace_s`."""
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
        """Calls a function that uses the pipes in a thread; after a cancellation the thread ends when they close."""
        return await to_thread.run_sync(partial(self._pipes.use, function, *args), abandon_on_cancel=True)


class _Pipes:
    """The pipes of a child, closed when no thread uses them any more.

    A grandchild may keep them open. If a pipe were closed while a thread reads from it, the thread would read from
    whatever file gets the same number next.
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
    """Starts a program in a new process group, and kills the whole group at the end of the block."""
    process = await to_thread.run_sync(_start, command, stderr)
    child = ChildProcess(process)
    try:
        yield child
    finally:
        with anyio.CancelScope(shield=True):
            await child.terminate(grace_s)
            _RUNNING.discard(process)


async def run_child(command: Sequence[str], data: bytes = b"", *, stderr: int = PIPE) -> CompletedProcess[bytes]:
    """Runs a program to its end; kills it if the call is cancelled."""
    async with open_child(command, stderr=stderr) as child:
        output, errors = await child.communicate(data)
        return CompletedProcess(command, await child.wait(), output, errors)


def exit_with_children(status: int) -> NoReturn:
    """Kills all children and ends this process at once."""
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

"""Programs of both sides, each a process of its own, started by the command that its documentation gives."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, sleep
from typing import IO, Protocol

import psutil

from tests.deadlines import DEADLINE_S
from tests.server.server import clean_environment
from tests.servers.process import ROOT

GRACE_S = 5.0


class Process(Protocol):
    """What a `subprocess.Popen` and a fork of the tests have in common."""

    @property
    def pid(self) -> int: ...

    def poll(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int: ...


def start(command: Sequence[str], folder: Path, environment: Mapping[str, str], output: int, errors: int) -> Process:
    """Starts a command in a folder and a session of its own, with files for what it writes."""
    return subprocess.Popen(
        command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=errors,
        start_new_session=True,
    )  # fmt: skip


class Program:
    """A running program with its log."""

    def __init__(self, process: Process, log: Path, output: IO[str] | None) -> None:
        self._process = process
        self._log = log
        self._output = output

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace")

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def wait(self) -> None:
        """Until it has ended by itself, and well."""
        code = self._process.wait()
        assert code == 0, f"it ended with {code}; its log: {self.log[-2000:]}"

    @property
    def rss_mib(self) -> float:
        """The memory of the program and of its children."""
        parent = psutil.Process(self.pid)
        return sum(each.memory_info().rss for each in (parent, *parent.children(recursive=True))) / (1 << 20)

    def line(self) -> str:
        """The next line that it prints."""
        assert self._output is not None
        line = self._output.readline()
        if not line:
            raise AssertionError(f"it ended; its log: {self.log[-2000:]}")
        return line

    def kill(self) -> None:
        """Kills it and its children, as a machine that loses power does."""
        if self.is_running:
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()

    def stop(self) -> None:
        """Asks it to end, and kills it if it does not."""
        if self.is_running:
            os.killpg(self.pid, signal.SIGTERM)
        try:
            self._process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            self.kill()


@contextmanager
def running(
    command: Sequence[str], environment: Mapping[str, str] | None = None, *, is_read: bool = False
) -> Iterator[Program]:
    """A program in an empty folder and a session of its own, ended with the block.

    What it prints goes to its log, because a pipe that nobody reads fills up, or is read line by line.
    """
    with TemporaryDirectory(prefix="tape-bench-") as folder, (Path(folder) / "log").open("a") as log:
        read, written = os.pipe() if is_read else (None, os.dup(log.fileno()))
        process = start(command, Path(folder), surroundings(environment), written, log.fileno())
        os.close(written)
        output = None if read is None else os.fdopen(read)
        program = Program(process, Path(folder) / "log", output)
        try:
            yield program
        finally:
            program.stop()
            if output is not None:
                output.close()


def surroundings(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """This environment without Tape's variables, so that every setting has its default."""
    return {**clean_environment(), "PYTHONPATH": str(ROOT), **(environment or {})}


def script(name: str) -> str:
    """A command that is installed beside this Python."""
    return str(Path(sys.executable).parent / name)


def until(holds: Callable[[], bool], what: str, within_s: float = DEADLINE_S) -> None:
    """Waits until a condition holds."""
    end = monotonic() + within_s
    while not holds():
        if monotonic() > end:
            raise AssertionError(f"after {within_s:g} s: {what}")
        sleep(0.002)

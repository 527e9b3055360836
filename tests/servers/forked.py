"""Starts a Python program in a fork of a process that has imported Tape: a server starts for a tenth of the CPU time.

What is special about a fork is not what these programs are for. Tests of how a command starts or of what it imports
start an interpreter.
"""

import atexit
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile
from threading import Lock
from typing import IO, Any

from tests.deadlines import DEADLINE_S

ROOT = Path(__file__).resolve().parents[2]


class Forked:
    """A running program with a session of its own; it is used like a `subprocess.Popen`."""

    def __init__(self, pid: int, exits: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._exits = exits

    def poll(self) -> int | None:
        return self._wait(0)

    def wait(self, timeout: float | None = None) -> int:
        code = self._wait(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
        return code

    def send_signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _wait(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._exits], [], [], timeout)[0]:
            (self.returncode,) = struct.unpack("i", os.read(self._exits, 4))
            os.close(self._exits)
        return self.returncode


def start(
    module: str, arguments: Sequence[str], *, folder: Path, environment: Mapping[str, str], output: int, errors: int
) -> Forked:
    """Runs `python -m module` in a folder, with files for its standard output and errors."""
    control, lock = _preloaded()
    request: dict[str, Any] = {
        "module": module,
        "arguments": list(arguments),
        "folder": str(folder),
        "environment": dict(environment),
    }
    exits, theirs = os.pipe()
    with lock:
        request["umask"] = os.umask(0)
        os.umask(request["umask"])
        socket.send_fds(control, [json.dumps(request).encode()], [output, errors, theirs])
        os.close(theirs)
        (pid,) = struct.unpack("i", control.recv(4))
    return Forked(pid, exits)


def run(
    module: str, arguments: Sequence[str], *, folder: Path, environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Waits for a program to end, and returns its exit code and what it wrote."""
    with TemporaryFile("w+") as output, TemporaryFile("w+") as errors:
        process = start(
            module, arguments, folder=folder, environment=environment, output=output.fileno(), errors=errors.fileno()
        )
        try:
            code = process.wait(DEADLINE_S)
        finally:
            process.kill()
        return subprocess.CompletedProcess(arguments, code, _text(output), _text(errors))


def _text(file: IO[str]) -> str:
    file.seek(0)
    return file.read()


@cache
def _preloaded() -> tuple[socket.socket, Lock]:
    """The connection to the process that forks, which ends with the tests."""
    control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.servers.preload", str(theirs.fileno())],
        cwd=ROOT, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()], start_new_session=True,
    )  # fmt: skip
    theirs.close()

    def end() -> None:
        control.close()
        process.wait()

    atexit.register(end)
    return control, Lock()

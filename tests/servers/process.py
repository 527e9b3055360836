"""A server's process in a folder of its own; neither outlives the tests, even when they are killed."""

import socket
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import SystemRandom
from types import TracebackType
from typing import Self

import psutil

from tests import figures
from tests.deadlines import DEADLINE_S
from tests.servers import process_tree
from tests.servers.account import Account
from tests.servers.errors import ServerMissing

ROOT = Path(__file__).resolve().parents[2]

# Below the ports that systems give to clients: one that keeps dialling a dead server there can end up with itself.
PORTS = range(15_000, 30_000)

Command = Sequence[str | Path]


class PrivateServer(ABC):
    """A server that runs within its block, on a loopback port that it keeps when it is killed and started again."""

    def __init__(self, name: str, account: Account) -> None:
        self._name = name
        self.folder = account.make_folder(f"tape-{name}-")
        self.port = free_port()
        self._account = account
        self._log = self.folder / "server.log"
        self._cleanup = start_cleanup(self.folder)
        self._running: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._running, "the server is not running"
        return self._running.pid

    @property
    def is_running(self) -> bool:
        return self._running is not None and self._running.poll() is None

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def kill_hard(self) -> None:
        """Kills it and all its children at once; returns when none is left."""
        figures.add(f"kill -9 of a {self._name}")
        self._finish(process_tree.kill)

    def restart(self) -> None:
        """On the same data and the same port, whether it was killed or not; returns when it can be used."""
        self._finish(process_tree.end)
        self._start()

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Suspends it and all its children; at the end of the block they read what has arrived meanwhile."""
        stopped = process_tree.freeze(psutil.Process(self.pid))
        try:
            yield
        finally:
            process_tree.thaw(stopped)

    def stop(self) -> None:
        """Ends it for good and deletes its folder."""
        self._finish(process_tree.end)
        self._cleanup.communicate()

    def __enter__(self) -> Self:
        try:
            self._create()
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @abstractmethod
    def _create(self) -> None:
        """What it needs before it is started for the first time."""

    @abstractmethod
    def _command(self) -> Command: ...

    @abstractmethod
    def _is_ready(self) -> bool: ...

    def _run(self, command: Command) -> None:
        """Waits for a program that ends by itself, and well."""
        if self._spawn(command).wait() != 0:
            raise self._failure(command)

    def _start(self) -> None:
        command = self._command()
        self._running = self._spawn(command)
        deadline = time.monotonic() + DEADLINE_S
        while not self._is_ready():
            if self._running.poll() is not None or time.monotonic() > deadline:
                raise self._failure(command)
            time.sleep(0.005)

    def _spawn(self, command: Command) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as output:
            process = self._account.spawn(command, self.folder, output)
        assert self._cleanup.stdin
        self._cleanup.stdin.write(f"{process.pid}\n")
        return process

    def _finish(self, how: Callable[[psutil.Process], None]) -> None:
        if self._running and self.is_running:
            how(psutil.Process(self._running.pid))
            self._running.wait()
        self._running = None

    def _failure(self, command: Command) -> ServerMissing:
        last_lines = " | ".join(self.log.splitlines()[-8:])
        return ServerMissing(f"{command[0]} did not start; its log ends with: {last_lines}")


def free_port() -> int:
    """A loopback port that nobody listens on now."""
    while True:
        port = SystemRandom().choice(PORTS)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port


def start_cleanup(folder: Path) -> subprocess.Popen[str]:
    """Starts a process that ends the servers whose ids are written to it, and deletes the folder, after the tests."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.servers.cleanup", folder],
        cwd=ROOT, stdin=subprocess.PIPE, text=True, bufsize=1, start_new_session=True,
    )  # fmt: skip

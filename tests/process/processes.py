"""The processes of one test: each has its own group, is paused and killed by id, and ends with the test."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import tape
from tests import figures
from tests.deadlines import DEADLINE_S
from tests.process import history, log
from tests.process.log import Seen
from tests.servers import forked

ROOT = Path(__file__).resolve().parents[2]


class Child:
    """A running module of tests/process; its stderr is a file."""

    def __init__(self, module: str, arguments: Sequence[object], stderr_text: Path, under: Sequence[str] = ()) -> None:
        self._stderr_text = stderr_text
        start = partial(interpreted, under) if under else forked_in_root
        with stderr_text.open("ab") as stderr:
            self._process = start(f"tests.process.{module}", [*map(str, arguments)], stderr)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        figures.add("kill -9 of a process")
        self.end()

    def end(self) -> None:
        """Kills it if it still runs."""
        self._signal(signal.SIGKILL)
        self._process.wait(DEADLINE_S)

    def pause(self) -> None:
        figures.add("suspended processes")
        self._signal(signal.SIGSTOP)
        until(lambda: self.is_paused, f"process {self.pid} is paused")

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    @property
    def is_paused(self) -> bool:
        """Whether all its threads are stopped."""
        tasks = Path(f"/proc/{self.pid}/task")
        return all((task / "stat").read_text().rpartition(")")[2].split()[0] == "T" for task in tasks.iterdir())

    @property
    def has_failed(self) -> bool:
        """Whether it exited with an error."""
        return self._process.poll() not in (None, 0, -signal.SIGKILL)

    def send(self, number: signal.Signals) -> None:
        self._signal(number)

    def was_killed(self, within_s: float = DEADLINE_S) -> bool:
        """Waits for its end; whether it ended by SIGKILL."""
        return self._process.wait(within_s) == -signal.SIGKILL

    def finish(self, within_s: float = DEADLINE_S) -> None:
        """Waits for its end, with exit code 0."""
        assert self._process.wait(within_s) == 0, self.stderr_text

    @property
    def stderr_text(self) -> str:
        return self._stderr_text.read_text()

    def _signal(self, number: signal.Signals) -> None:
        if self.is_running:
            os.killpg(self._process.pid, number)


def forked_in_root(module: str, arguments: Sequence[str], stderr: IO[bytes]) -> forked.Forked:
    with Path(os.devnull).open("wb") as nothing:
        output, errors = nothing.fileno(), stderr.fileno()
        return forked.start(module, arguments, folder=ROOT, environment=os.environ, output=output, errors=errors)


def interpreted(
    under: Sequence[str], module: str, arguments: Sequence[str], stderr: IO[bytes]
) -> subprocess.Popen[bytes]:
    """Starts an interpreter, under a program that observes or limits it."""
    command = [*under, sys.executable, "-m", module, *arguments]
    paths = os.pathsep.join([str(ROOT), str(Path(tape.__file__).parents[1]), *filter(None, sys.path)])
    return subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=stderr, cwd=ROOT, start_new_session=True,
        env=os.environ | {"PYTHONPATH": paths},
    )  # fmt: skip


class Processes:
    """Starts children, and kills all of them at the end of the block."""

    def __init__(self, folder: Path, journal: Path | None = None, url: str | None = None) -> None:
        self.folder = folder
        self.journal = journal or folder / "journal.db"
        self.place = url or self.journal
        self.url = url or f"sqlite:///{self.journal}"
        self._children: list[Child] = []

    def start(self, module: str, *arguments: object, under: Sequence[str] = ()) -> Child:
        figures.add("processes started")
        child = Child(module, arguments, self.folder / f"{module}.err", under)
        self._children.append(child)
        return child

    def log(self, name: str) -> Path:
        return self.folder / f"{name}.jsonl"

    def wait_for_line(self, name: str) -> None:
        """Waits until a child has logged another line."""
        path = self.log(name)
        before = path.stat().st_size if path.exists() else 0
        self.wait(lambda: path.exists() and path.stat().st_size > before, f"{name} logs a line")

    def wait_for_tail(self) -> None:
        """Waits until the tail has reached the head."""
        head = history.head(self.place)
        self.wait(lambda: last_seen(self.log("seen")) >= head, f"the tail is at {head}")

    def wait(self, condition: Callable[[], bool], what: str, within_s: float = DEADLINE_S) -> None:
        """Waits for a condition; fails at once when a child has exited with an error."""
        until(lambda: self._has_failed or condition(), what, within_s)
        assert not self._has_failed, self._stderr_text

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for child in self._children:
            child.end()

    @property
    def _has_failed(self) -> bool:
        return any(child.has_failed for child in self._children)

    @property
    def _stderr_text(self) -> str:
        return "".join(path.read_text() for path in self.folder.glob("*.err"))


def until(condition: Callable[[], bool], what: str, within_s: float = DEADLINE_S) -> None:
    """Waits for a condition; one that takes long is tried less often, so that the test leaves the processors alone."""
    began = tried = time.monotonic()
    while not condition():
        now = time.monotonic()
        assert now < began + within_s, f"not within {within_s:g} s: {what}"
        time.sleep(min(max(0.005, 4 * (now - tried)), 0.1))
        tried = time.monotonic()


def last_seen(path: Path) -> int:
    seen = log.last(path, Seen)
    return seen.global_seq if seen else 0

"""A process of the chaos: it is started again and again with the same name and arguments."""

import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from tape.checker.lines import StoppedLine
from tests.deadlines import DEADLINE_S
from tests.process.recorder import Recorder
from tests.server.server import clean_environment
from tests.servers import forked
from tests.servers.process import ROOT


class Part:
    """A program of Tape or of a user, with its output in files of a folder."""

    def __init__(
        self,
        name: str,
        folder: Path,
        module: str,
        arguments: Sequence[str],
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.deaths: list[str] = []
        """How it ended when nobody had killed it, which no fault allows."""
        self._folder = folder
        self._module = module
        self._arguments = arguments
        self._environment = {**clean_environment(), "TAPE_DATA": str(folder / f"{name}.data"), **(environment or {})}
        self._harness = Recorder(folder / f"{name}.stops.jsonl", name)
        self._process: forked.Forked | None = None

    def start(self) -> None:
        with (self._folder / f"{self.name}.out").open("ab") as output:
            self._process = forked.start(
                self._module, self._arguments, folder=ROOT, environment=self._environment,
                output=output.fileno(), errors=output.fileno(),
            )  # fmt: skip

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        """With which it ended by itself."""
        return self._process.poll() if self._process is not None else None

    @property
    def output(self) -> str:
        path = self._folder / f"{self.name}.out"
        return path.read_text(errors="replace") if path.exists() else ""

    def revive(self) -> None:
        """Starts it again if it has ended by itself, which is a finding."""
        if (code := self.exit_code) is not None:
            self.deaths.append(f"{self.name} ended by itself with {code}")
            self.start()

    def kill(self) -> None:
        if self._process is not None and self.is_running:
            os.killpg(self.pid, signal.SIGKILL)
            self._process.wait(DEADLINE_S)
            self._harness.write(StoppedLine)
        elif self._process is not None:
            self.deaths.append(f"{self.name} ended by itself with {self.exit_code}")
        self._process = None

    def stop(self) -> None:
        self._signal(signal.SIGSTOP)
        self._harness.write(StoppedLine)

    def go_on(self) -> None:
        self._signal(signal.SIGCONT)

    def usage(self) -> tuple[int, int]:
        """Its memory in bytes, and its open descriptors."""
        process = psutil.Process(self.pid)
        return int(process.memory_info().rss), int(process.num_fds())

    def _signal(self, number: signal.Signals) -> None:
        if self.is_running:
            os.killpg(self.pid, number)

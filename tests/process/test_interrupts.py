"""One signal ends a long-running command at any moment."""

import fcntl
import os
import select
import shutil
import signal
import subprocess
import sys
import termios
import time
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import IO

import pytest

from tests.conftest import Scale
from tests.deadlines import DEADLINE_S
from tests.process.processes import until

TRIES = 2
QUIET = (
    ("tail",),
    ("tail", "--run", "a"),
    ("value", "watch", "shop", "price"),
)
LEAVING = (
    ("work", "handlers"),
    ("serve", "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0"),
)
SIGNALS = (signal.SIGINT, signal.SIGTERM)
HANDLERS = """
import tape

@tape.on("/shop/**")
def notice(event):
    pass
"""
LOST = """
import signal, sys, weakref
from tape.cli.command import main

class Passing:
    pass

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "anyio":
            passing = Passing()
            watcher = weakref.ref(passing, lambda _: signal.raise_signal(signal.SIGINT))
            del passing

sys.meta_path.insert(0, Finder())
main()
"""

WORKING = """
import duckdb
from tape.cli.choices import run_in_thread
from tape.cli.interrupts import interrupts

interrupts.listen()
try:
    with interrupts.raising():
        print("works", flush=True)
        count = "SELECT count(*) FROM range(10000000000000) r WHERE hash(r.range) = 3"
        run_in_thread(lambda: duckdb.sql(count).fetchall())
except KeyboardInterrupt:
    interrupts.end(interrupts.code)
"""
LEFT = """
import threading, time
from tape.cli.interrupts import interrupts

threading.Thread(target=time.sleep, args=(100_000,)).start()
interrupts.end(3)
"""


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a journal that holds a run and a value, and with a module of handlers."""
    folder = tmp_path_factory.mktemp("filled")
    (folder / "handlers.py").write_text(HANDLERS)
    for arguments in (("publish", "a", "40", "--open"), ("value", "set", "shop", "price", "40")):
        with tape(folder, *arguments) as process:
            assert process.wait(DEADLINE_S) == 0
    return folder


@pytest.fixture(scope="module")
def start_s(filled: Path) -> float:
    """How long it takes on this machine until a command writes its first line."""
    began = time.monotonic()
    with tape(filled, "value", "watch", "shop", "price") as process:
        assert process.stdout and process.stdout.readline()
        return time.monotonic() - began


@pytest.fixture
def place(start_s: float, filled: Path, tmp_path: Path) -> Path:
    """A copy of the folder for one test, without the socket that a killed command may have left."""
    shutil.copytree(filled, tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.wake"))
    return tmp_path


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("arguments", QUIET, ids=" ".join)
def test_a_command_that_watches_ends_quietly_at_any_moment(
    arguments: tuple[str, ...], number: signal.Signals, place: Path, start_s: float, scale: Scale
) -> None:
    endings = {interrupted(place, arguments, number, start_s) for _ in range(scale(TRIES))}

    assert endings == {(128 + number, "")}


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("arguments", LEAVING, ids=lambda arguments: arguments[0])
def test_a_command_that_serves_or_works_ends_at_any_moment(
    arguments: tuple[str, ...], number: signal.Signals, place: Path, start_s: float, scale: Scale
) -> None:
    endings = [interrupted(place, arguments, number, 2 * start_s) for _ in range(scale(TRIES))]

    assert {code for code, _ in endings} <= {0, 128 + number}
    assert [line for _, errors in endings for line in errors.splitlines() if not line.startswith("{")] == []


@pytest.mark.parametrize("arguments", QUIET, ids=" ".join)
def test_a_command_that_gets_two_signals_at_once_ends_quietly(
    arguments: tuple[str, ...], place: Path, start_s: float, scale: Scale
) -> None:
    """The program `timeout` signals the command first and then its whole group."""
    endings = {interrupted(place, arguments, signal.SIGINT, start_s, times=2) for _ in range(scale(TRIES))}

    assert endings == {(130, "")}


def test_a_signal_during_imports_is_not_lost(place: Path) -> None:
    command = [sys.executable, "-c", LOST, "tail"]

    done = subprocess.run(command, cwd=place, env=environment(), capture_output=True, timeout=DEADLINE_S, check=False)

    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


@pytest.mark.parametrize("number", SIGNALS)
def test_a_command_that_works_in_c_ends(number: signal.Signals) -> None:
    command = [sys.executable, "-c", WORKING]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == "works\n"
            process.send_signal(number)
            _, errors = process.communicate(timeout=DEADLINE_S)
        finally:
            process.kill()

    assert (process.returncode, errors) == (128 + number, "")


def test_an_abandoned_thread_does_not_delay_the_exit() -> None:
    left = subprocess.run([sys.executable, "-c", LEFT], timeout=DEADLINE_S, check=False)

    assert left.returncode == 3


def test_a_command_that_reads_stdin_ends(place: Path) -> None:
    with tape(place, "publish", "a", "-") as process:
        assert process.stdin
        process.stdin.write('"half of it')
        process.stdin.flush()
        until(lambda: is_read(process.stdin), "it has read the first half")

        process.send_signal(signal.SIGINT)

        assert process.wait(DEADLINE_S) == 130


def test_a_command_with_a_closed_stdout_ends(place: Path) -> None:
    (place / "much.jsonl").write_text("\n".join(f'"{"much " * 200}"' for _ in range(500)))
    with tape(place, "publish", "a", "@much.jsonl") as process:
        assert process.wait(DEADLINE_S) == 0
    source, sink = os.pipe()

    with os.fdopen(source), os.fdopen(sink, "w") as full, tape(place, "tail", "--run", "a", stdout=full) as process:
        until(lambda: select.select([], [full], [], 0)[1] == [], "the pipe is full")
        process.send_signal(signal.SIGINT)

        assert process.wait(DEADLINE_S) == 130


def handles_signals(process: subprocess.Popen[str]) -> bool:
    """Whether a command has installed its handlers: it catches a signal that Python does not."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    caught = next(line for line in status.splitlines() if line.startswith("SigCgt:"))
    return bool(int(caught.split()[1], 16) >> (signal.SIGTERM - 1) & 1)


def is_read(pipe: IO[str] | None) -> bool:
    """Whether nothing of what was written is still in the pipe."""
    assert pipe
    left = array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, left)
    return left[0] == 0


def interrupted(
    place: Path, arguments: tuple[str, ...], number: signal.Signals, within_s: float, times: int = 1
) -> tuple[int, str]:
    """The exit code and stderr of a command that gets a signal at some moment."""
    with tape(place, *arguments) as process:
        until(lambda: handles_signals(process), "it handles signals")
        time.sleep(Random().uniform(0, within_s))
        for _ in range(times):
            process.send_signal(number)
        _, errors = process.communicate(timeout=DEADLINE_S)
    return process.returncode, errors


@contextmanager
def tape(place: Path, *arguments: str, stdout: IO[str] | int = subprocess.PIPE) -> Iterator[subprocess.Popen[str]]:
    """A command in a process of its own, gone with the block."""
    with subprocess.Popen(
        [sys.executable, "-m", "tape.cli.command", *arguments],
        cwd=place,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("TAPE_")}

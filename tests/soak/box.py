"""Runs a suite within its box of time: pytest in a process, watched, and ended by the clock if it must be."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TypeAlias
from uuid import uuid4

import psutil

from tests.servers import process_tree
from tests.soak.conditions import conditions
from tests.soak.outcome import End, Outcome, read_tests
from tests.soak.suites import ENDING_S, Suite
from tests.soak.watch import Watch

ROOT: Final = Path(__file__).resolve().parents[2]
BEGINNING: Final = 0.9  # of a box is for tests to begin, the rest for those that have begun
LOOK_S: Final = 2.0
CODES: Final = {0, 1}  # pytest has run all tests, and some may have failed
MARK: Final = "SOAK_SUITE"  # an environment variable by which every process of a suite is found

Now: TypeAlias = Callable[[], float]
OnLook: TypeAlias = Callable[[], None]


def run(suite: Suite, sources: str, folder: Path, on_look: OnLook = lambda: None, now: Now = time.monotonic) -> Outcome:
    """Runs a suite to its end, which is the end of its box at the latest; calls `on_look` all the while."""
    before, began, began_at, mark = conditions(), now(), datetime.now(UTC), uuid4().hex
    record = folder / f"{suite.name}.jsonl"
    record.unlink(missing_ok=True)
    with _started(suite, record, folder / f"{suite.name}.log", began, mark) as process:
        watch = Watch(process.pid)
        is_late = not _wait(process, suite.box_s, now, (watch.look, on_look))
        code = _end(process) if is_late else process.returncode
    tests = read_tests(record)
    end = _end_of(code, is_clocked=is_late or tests.is_clocked)
    return Outcome(
        sources=sources,
        began=began_at.isoformat(timespec="seconds"),
        scale=suite.scale,
        box_s=suite.box_s,
        seconds=now() - began,
        end=end,
        reason=f"pytest ended with {code}" if end == "broken" else "",
        tests=tests,
        peak=watch.peak,
        left_behind=_remove_left_behind(mark),
        conditions=before,
    )


def command(suite: Suite, record: Path, until: float) -> list[str]:
    workers = ["-n", str(suite.workers)] if suite.workers > 1 else []
    # A test of a soak may take long: only one that hangs until its suite ends shows where it is.
    still = f"faulthandler_timeout={max(60.0, suite.box_s / 2):.0f}"
    options = ["--record", str(record), "--until", str(until), "--scale", str(suite.scale), "-o", still]
    return [
        sys.executable, "-m", "pytest", "-p", "tests.soak.recording", "-p", "no:cacheprovider", "-q",
        *workers, *options, *suite.tests,
    ]  # fmt: skip


@contextmanager
def _started(suite: Suite, record: Path, log: Path, began: float, mark: str) -> Iterator["subprocess.Popen[bytes]"]:
    """Whatever happens, nothing of its process group stays."""
    until = began + BEGINNING * suite.box_s
    with log.open("wb") as output:
        process = subprocess.Popen(
            command(suite, record, until), cwd=ROOT, env={**os.environ, MARK: mark}, stdin=subprocess.DEVNULL,
            stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    try:
        yield process
    finally:
        if process.poll() is None:
            _end(process)


def _wait(process: "subprocess.Popen[bytes]", most_s: float, now: Now, looks: Iterable[OnLook]) -> bool:
    """Whether it ended by itself within a time."""
    until = now() + most_s
    while (left := until - now()) > 0:
        for look in looks:
            look()
        with suppress(subprocess.TimeoutExpired):
            process.wait(min(LOOK_S, left))
            return True
    return False


def _end(process: "subprocess.Popen[bytes]") -> int:
    """Interrupts it as Ctrl-C does, so that it ends its servers, and kills it if that takes too long."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGINT)
    try:
        return process.wait(ENDING_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return process.wait()


def _end_of(code: int, *, is_clocked: bool) -> End:
    if is_clocked:
        return "clock"
    return "complete" if code in CODES else "broken"


def _remove_left_behind(mark: str) -> tuple[str, ...]:
    """Ends what a suite has started and not ended; those that clean up after it have some seconds for that."""
    deadline = time.monotonic() + ENDING_S
    while (left := _marked(mark)) and time.monotonic() < deadline:
        time.sleep(0.2)
    found = tuple(sorted(_name(process) for process in left))
    for process in left:
        process_tree.kill(process)
    return found


def _marked(mark: str) -> list[psutil.Process]:
    return [process for process in psutil.process_iter() if _is_marked(process, mark)]


def _is_marked(process: psutil.Process, mark: str) -> bool:
    try:
        return process.environ().get(MARK) == mark and not process_tree.is_gone(process)
    except psutil.Error:
        return False


def _name(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())[:120]
    except psutil.Error:
        return f"process {process.pid}"

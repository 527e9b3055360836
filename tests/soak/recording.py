"""A plugin of pytest that records each test as a line as soon as it has ended, and begins none after a time.

`pytest -p tests.soak.recording --record FILE --until SECONDS`, where the seconds are those of the machine's monotonic
clock. With several worker processes each of them looks at the clock, and the first process writes the file.
"""

import re
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from tests import figures

CLOCK: Final = "ended by the clock"
EXAMPLES: Final = re.compile(r"(\d+) passing\b")


class Collected(msgspec.Struct, tag=True, frozen=True):
    """How many tests there are."""

    tests: int


class Begun(msgspec.Struct, tag=True, frozen=True):
    """A test has begun."""

    test: str


class Phase(msgspec.Struct, tag=True, frozen=True):
    """The setup, call or teardown of a test has ended."""

    test: str
    when: str
    outcome: str
    seconds: float
    message: str = ""
    figures: dict[str, int] = {}
    notes: list[str] = []


class Clocked(msgspec.Struct, tag=True, frozen=True):
    """The clock has ended the suite."""


Line = Collected | Begun | Phase | Clocked


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record", type=Path, required=True, help="a file that gets a line for each test")
    parser.addoption("--until", type=float, required=True, help="when the last test may begin, on the monotonic clock")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Clock(config.getoption("--until")), "clock")
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Record(config.getoption("--record")))


class Clock:
    """Begins no test after a time, and attaches to each report what its test has done."""

    def __init__(self, until: float) -> None:
        self.until = until

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        if time.monotonic() < self.until:
            return None
        item.session.shouldstop = CLOCK
        return True

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if report.when == "call":
            figures.add("generated examples", generated(item))
        done, notes = figures.take()
        report.user_properties += [("figures", done), ("notes", notes)]
        return report


class Record:
    """Writes the lines, each at once: the process may be killed."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb", buffering=0)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        if session.items:
            self._write(Collected(len(session.items)))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        self._write(Collected(len(ids)))

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._write(Begun(nodeid))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._write(phase(report))

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        if str(excinfo.value) == CLOCK:
            self._write(Clocked())

    def pytest_unconfigure(self) -> None:
        self._file.close()

    def _write(self, line: Line) -> None:
        self._file.write(msgspec.json.encode(line) + b"\n")


def phase(report: pytest.TestReport) -> Phase:
    found: dict[str, Any] = dict(report.user_properties)
    return Phase(
        report.nodeid,
        report.when,
        report.outcome,
        report.duration,
        message(report),
        found.get("figures", {}),
        found.get("notes", []),
    )


def generated(item: pytest.Item) -> int:
    """How many examples Hypothesis has tried, from the statistics that it attaches to a test."""
    return sum(map(int, EXAMPLES.findall(getattr(item, "hypothesis_statistics", ""))))


def message(report: pytest.TestReport) -> str:
    """The last error of a test that failed, in a line."""
    if report.outcome != "failed":
        return ""
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash else str(report.longrepr)
    return text.strip().partition("\n")[0][:300]

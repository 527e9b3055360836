"""A soak: its suites one after another, its state after each, and its report all the while."""

import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from tests.soak import box
from tests.soak.outcome import Outcome, read_tests
from tests.soak.report import page
from tests.soak.state import State, only_one
from tests.soak.suites import Suite

ROOT: Final = Path(__file__).resolve().parents[2]
FOLDER: Final = ROOT / "build" / "soak"
TELL_S: Final = 60.0

Run: TypeAlias = Callable[[Suite, str, Path, box.OnLook], Outcome]


class Soak:
    """Runs suites that have not run with some sources yet."""

    def __init__(self, suites: Sequence[Suite], sources: str, folder: Path, report: Path, run: Run = box.run) -> None:
        self._suites = suites
        self._sources = sources
        self._folder = folder
        self._report = report
        self._run_in_box = run
        self._state = State(folder / "state.json")

    def run(self, again: Collection[str] = ()) -> bool:
        """Whether all suites are green, those that ran before included; suites to run again can be named."""
        with only_one(self._folder / "lock"):
            for suite in self._suites:
                if suite.name in again or (not again and self._current(suite) is None):
                    self._run(suite)
                elif not again:
                    _print(f"{suite.name}: ran with these sources before: {self._verdict(suite)}")
            self._write()
        return all((outcome := self._current(suite)) is not None and outcome.is_green for suite in self._suites)

    def _run(self, suite: Suite) -> None:
        _print(f"{suite.name}: begins, with scale {suite.scale:g}, for {clock(suite.box_s)} at most")
        self._write(suite)
        outcome = self._run_in_box(suite, self._sources, self._folder, _Teller(suite, self._folder).look)
        self._state.store(suite.name, outcome)
        self._write()
        _print(f"{suite.name}: {self._verdict(suite)}")

    def _current(self, suite: Suite) -> Outcome | None:
        return self._state.current(suite, self._sources)

    def _verdict(self, suite: Suite) -> str:
        outcome = self._current(suite)
        if outcome is None:
            return "not run"
        tests = outcome.tests
        parts = [f"{tests.passed} passed", f"{len(tests.failed)} failed", f"{tests.skipped} skipped"]
        return f"{outcome.sentence} in {clock(outcome.seconds)}: {', '.join(parts)}"

    def _write(self, running: Suite | None = None) -> None:
        outcomes = {suite.name: outcome for suite in self._suites if (outcome := self._current(suite))}
        self._report.write_text("\n".join(page(self._suites, outcomes, running)) + "\n", encoding="utf-8")


class _Teller:
    """Prints how far a suite is, once a minute."""

    def __init__(self, suite: Suite, folder: Path) -> None:
        self._suite = suite
        self._record = folder / f"{suite.name}.jsonl"
        self._began = self._printed = time.monotonic()

    def look(self) -> None:
        now = time.monotonic()
        if now >= self._printed + TELL_S:
            self._printed = now
            tests = read_tests(self._record)
            _print(
                f"{self._suite.name}: {tests.ended} of {tests.collected} tests, {len(tests.failed)} failed, "
                f"after {clock(now - self._began)} of {clock(self._suite.box_s)}"
            )


def clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def _print(line: str) -> None:
    print(f"soak: {line}", flush=True)

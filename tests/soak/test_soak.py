"""A soak goes on where it was interrupted, reports as it goes, and calls nothing green that is not."""

import fcntl
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.soak.box import OnLook
from tests.soak.outcome import Outcome, Peak, Tally
from tests.soak.report import PAGE
from tests.soak.soak import Soak
from tests.soak.suites import ENDING_S, SUITES, WHOLE_MINUTES, Suite, within

FIRST, SECOND, THIRD = (
    Suite(name=name, tests=(f"tests/{name}",), scale=2, minutes=5) for name in ("first", "second", "third")
)
GOOD = Tally(
    collected=3, passed=3, failed={}, skipped=0, unfinished=(), slowest=("tests/a.py::test_a", 1.5),
    figures={"kills": 1_200}, notes=(), is_clocked=False,
)  # fmt: skip
BAD = msgspec.structs.replace(GOOD, passed=2, failed={"tests/a.py::test_b": "assert 1 == 2 | `ticks`"})
SHORT = msgspec.structs.replace(GOOD, passed=1, unfinished=("tests/a.py::test_c",))


class Boxes:
    """Runs no tests: gives outcomes, and knows which suites ran; the name `interrupted` is never there at its end."""

    def __init__(self, report: Path) -> None:
        self.ran: list[str] = []
        self.reports: list[str] = []
        self.interrupted: str | None = None
        self.more: Mapping[str, Mapping[str, Any]] = {}
        self._report = report

    def run(self, suite: Suite, sources: str, folder: Path, on_look: OnLook) -> Outcome:
        self.reports.append(self._report.read_text())
        if suite.name == self.interrupted:
            raise KeyboardInterrupt
        self.ran.append(suite.name)
        outcome = Outcome(
            sources=sources, began="2026-01-02T03:04:05+00:00", scale=suite.scale, box_s=suite.box_s, seconds=61.0,
            end="complete", reason="", tests=GOOD, peak=Peak(4, 512, "postgres", 2_048, 30), left_behind=(),
            conditions={"cores": "2"},
        )  # fmt: skip
        return msgspec.structs.replace(outcome, **self.more.get(suite.name, {}))


@pytest.fixture
def boxes(tmp_path: Path) -> Boxes:
    return Boxes(tmp_path / "report.md")


Start = Callable[..., Soak]


@pytest.fixture
def start(tmp_path: Path, boxes: Boxes) -> Start:
    """A soak, as the command begins one, in a folder that the next one has as well."""

    def started(*suites: Suite, sources: str = "abc") -> Soak:
        return Soak(suites or (FIRST, SECOND, THIRD), sources, tmp_path, tmp_path / "report.md", boxes.run)

    return started


def test_a_soak_whose_suites_are_all_green_is_green(start: Start, boxes: Boxes) -> None:
    assert start().run()
    assert boxes.ran == ["first", "second", "third"]


def test_an_interrupted_soak_goes_on_with_the_suite_that_is_not_done(start: Start, boxes: Boxes) -> None:
    boxes.interrupted = "second"
    with pytest.raises(KeyboardInterrupt):
        start().run()
    boxes.interrupted = None

    assert start().run()
    assert boxes.ran == ["first", "second", "third"]


def test_other_sources_begin_again(start: Start, boxes: Boxes) -> None:
    start(FIRST).run()

    start(FIRST, sources="def").run()

    assert boxes.ran == ["first", "first"]


@pytest.mark.parametrize("change", [{"minutes": 1}, {"scale": 9}])
def test_another_box_or_scale_begins_again(start: Start, boxes: Boxes, change: dict[str, Any]) -> None:
    start(FIRST).run()

    start(Suite(**{"name": "first", "tests": FIRST.tests, "scale": 2, "minutes": 5, **change})).run()

    assert boxes.ran == ["first", "first"]


def test_a_suite_that_is_named_runs_again_alone(start: Start, boxes: Boxes) -> None:
    start().run()

    start().run(["second"])

    assert boxes.ran == ["first", "second", "third", "second"]


def test_a_suite_that_fails_ends_no_soak_and_makes_it_red(start: Start, boxes: Boxes, tmp_path: Path) -> None:
    boxes.more = {"first": {"tests": BAD}}

    assert not start().run()
    assert not start().run()
    report = (tmp_path / "report.md").read_text()
    assert boxes.ran == ["first", "second", "third"]
    assert "3 of 3 suites have run, in 3:03 minutes; 2 of them are green." in report
    assert "| **not green**: all 3 tests | 2 | 1 | 0 |" in report
    assert "- first: failed: `tests/a.py::test_b`: `assert 1 == 2 | 'ticks'`" in report


def test_a_suite_that_the_clock_ended_is_not_green(start: Start, boxes: Boxes, tmp_path: Path) -> None:
    boxes.more = {"second": {"tests": SHORT, "end": "clock"}}

    assert not start().run()
    report = (tmp_path / "report.md").read_text()
    assert "| **not green**: 1 of 3 tests, ended by the clock | 1 | 0 | 0 |" in report
    assert "- second: had begun and was ended: `tests/a.py::test_c`" in report


def test_the_report_is_written_before_each_suite(start: Start, boxes: Boxes) -> None:
    start(FIRST, SECOND).run()

    assert "0 of 2 suites have run" in boxes.reports[0] and "| running |" in boxes.reports[0]
    assert "1 of 2 suites have run" in boxes.reports[1] and "| first | kills | 1,200 |" in boxes.reports[1]


def test_two_soaks_at_once_are_refused(start: Start, boxes: Boxes, tmp_path: Path) -> None:
    with (tmp_path / "lock").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)

        with pytest.raises(SystemExit, match="running here already"):
            start().run()
    assert boxes.ran == []


def test_all_boxes_and_their_ends_take_no_longer_than_the_soak() -> None:
    boxes, ends = sum(suite.minutes for suite in SUITES), len(SUITES) * 2 * ENDING_S / 60

    assert boxes + ends <= WHOLE_MINUTES


def test_a_shorter_soak_has_shorter_boxes() -> None:
    assert [suite.minutes for suite in within(WHOLE_MINUTES / 2)] == [suite.minutes / 2 for suite in SUITES]
    assert within(WHOLE_MINUTES) == SUITES


def test_the_page_has_every_suite() -> None:
    text = PAGE.read_text()

    assert [suite.name for suite in SUITES if f"\n| {suite.name} | " not in text] == []

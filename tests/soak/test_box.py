"""A suite is recorded test by test, and has ended at the end of its box."""

import time
from pathlib import Path

import psutil
import pytest

from tests.servers import process_tree
from tests.soak import box
from tests.soak.conftest import MakeSuite

MIXED = """
import pytest
from hypothesis import given, strategies
from tests import figures

@given(strategies.booleans())
def test_good(_): ...
def test_better_than_good(): figures.add("kills", 2)
def test_better(): figures.add("kills", 3); figures.note("a note")
def test_bad(): assert 1 == 2
@pytest.fixture
def broken():
    yield
    raise RuntimeError("no end")
def test_with_a_broken_end(broken): ...
@pytest.mark.skip
def test_left_out(): ...
"""
ENDLESS = """
import threading

def test_good(): ...
def test_endless(): threading.Event().wait()
def test_never_reached(): ...
"""
LATE = """
def test_good(pytestconfig): pytestconfig.pluginmanager.get_plugin("clock").until = 0.0
def test_never_begun(): ...
"""
LEAVES_A_PROCESS = """
import pathlib, subprocess

def test_good():
    left = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    pathlib.Path(__file__).with_name("pid").write_text(str(left.pid))
"""


@pytest.mark.parametrize("workers", [1, 2])
def test_the_outcome_of_a_suite_has_each_test_and_its_figures(
    make_suite: MakeSuite, tmp_path: Path, workers: int
) -> None:
    outcome = box.run(make_suite("mixed", MIXED, workers=workers), "abc", tmp_path)

    tests = outcome.tests
    assert (tests.collected, tests.passed, tests.skipped, tests.ended) == (6, 3, 1, 6)
    assert [name.rpartition("::")[2] for name in tests.failed] == ["test_bad", "test_with_a_broken_end"]
    assert [*tests.failed.values()] == ["assert 1 == 2", "RuntimeError: no end"]
    assert (tests.figures, tests.notes) == ({"generated examples": 2, "kills": 5}, ("a note",))
    assert (outcome.end, outcome.sentence, outcome.is_green) == ("complete", "all 6 tests", False)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_suite_that_hangs_is_ended_by_the_clock_and_is_not_green(
    make_suite: MakeSuite, tmp_path: Path, workers: int
) -> None:
    record = tmp_path / "endless.jsonl"

    def now() -> float:
        """The end of the box comes when the test that hangs has begun."""
        has_begun = record.exists() and b"test_endless" in record.read_bytes()
        return time.monotonic() + (3_600.0 if has_begun else 0.0)

    outcome = box.run(make_suite("endless", ENDLESS, workers=workers), "abc", tmp_path, now=now)

    assert outcome.sentence == "1 of 3 tests, ended by the clock"
    assert [test.rpartition("::")[2] for test in outcome.tests.unfinished] == ["test_endless"]
    assert (outcome.end, outcome.is_green, outcome.left_behind) == ("clock", False, ())


@pytest.mark.parametrize("workers", [1, 2])
def test_when_the_time_to_begin_is_over_no_test_begins_and_what_has_begun_ends(
    make_suite: MakeSuite, tmp_path: Path, workers: int
) -> None:
    outcome = box.run(make_suite("late", LATE, workers=workers), "abc", tmp_path)

    assert outcome.sentence == "1 of 2 tests, ended by the clock"
    assert (outcome.tests.passed, outcome.tests.unfinished, outcome.is_green) == (1, (), False)


def test_a_suite_that_cannot_begin_is_not_green(make_suite: MakeSuite, tmp_path: Path) -> None:
    outcome = box.run(make_suite("wrong", "import nothing_of_this_name"), "abc", tmp_path)

    assert (outcome.end, outcome.sentence) == ("broken", "0 of 0 tests, pytest ended with 2")
    assert not outcome.is_green


def test_a_process_that_a_suite_leaves_behind_is_reported_and_ended(
    make_suite: MakeSuite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(box, "ENDING_S", 1.0)

    outcome = box.run(make_suite("leaving", LEAVES_A_PROCESS), "abc", tmp_path)

    assert (outcome.tests.passed, outcome.left_behind, outcome.is_green) == (1, ("sleep 1000",), False)
    left = int((tmp_path / "suites" / "pid").read_text())
    assert left not in psutil.pids() or process_tree.is_gone(psutil.Process(left))

"""The page *How Tape is tested* names the tests that there are, and every invariant has one of its name."""

import re
from collections import defaultdict
from functools import cache

import pytest

from tape.checker.check import JUDGES
from tests.architecture.tree import ROOT
from tests.chaos.report import JUDGED
from tests.mutants.mistakes import read_mistakes

PAGE = (ROOT / "docs" / "how-tested.md").read_text()
INVARIANTS = [f"P{number}" for number in range(1, 22)]
NOT_BUILT = {"P20"}
NAMED = re.compile(r"^(?:async )?def test_(p\d+)_", re.MULTILINE)
ROW = re.compile(r"^\| (P\d+) \| [^|]+ \| ([^|]*?) \| ([^|]*?) \| ([^|]*?) \| ([^|]*?) \|$", re.MULTILINE)
SUITE = re.compile(r"^\| ((?:`[a-z]+`(?:, )?)+) \| ", re.MULTILINE)
NO_SUITES = {"servers"}  # its tests are of the servers that the other tests use


@pytest.mark.parametrize("invariant", INVARIANTS)
def test_an_invariant_has_a_test_of_its_name_unless_it_is_not_built(invariant: str) -> None:
    assert bool(suites_by_invariant()[invariant]) is (invariant not in NOT_BUILT)


@pytest.mark.parametrize("invariant", INVARIANTS)
def test_the_page_says_what_shows_an_invariant(invariant: str) -> None:
    rows = {row[0]: row[1:] for row in ROW.findall(PAGE)}

    assert rows[invariant] == (
        ", ".join(sorted(suites_by_invariant()[invariant])) or "not built",
        mark(invariant in JUDGES),
        mark(invariant in JUDGED),
        mark(any(mistake.invariant.startswith(f"{invariant}:") for mistake in read_mistakes())),
    )


def test_the_page_lists_every_folder_of_tests_once() -> None:
    listed = [name for row in SUITE.findall(PAGE) for name in re.findall(r"`([a-z]+)`", row)]
    folders = {path.relative_to(ROOT / "tests").parts[0] for path in (ROOT / "tests").rglob("test_*.py")}

    assert sorted(listed) == sorted({*folders - NO_SUITES, "bench", "mutants"})


def test_the_files_and_targets_that_the_page_names_are_there() -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    files = re.findall(r"`(tests/[^` ]+)`", PAGE)

    assert [file for file in files if not (ROOT / file).exists()] == []
    assert set(re.findall(r"`make ([a-z-]+)", PAGE)) <= set(targets)


@cache
def suites_by_invariant() -> dict[str, set[str]]:
    """The folders of tests with a test that is named after an invariant."""
    found = defaultdict[str, set[str]](set)
    for path in (ROOT / "tests").rglob("test_*.py"):
        for name in NAMED.findall(path.read_text()):
            found[name.upper()].add(path.relative_to(ROOT / "tests").parts[0])
    return found


def mark(holds: bool) -> str:
    return "yes" if holds else "–"

"""The seeded mistakes still fit the source, and the tests that must notice them are there."""

import ast
from functools import cache

import pytest

from tests.mutants.mistakes import ROOT, Mistake, read_mistakes
from tests.mutants.results import PAGE, page, read_results

MISTAKES = read_mistakes()
FEWEST = 48


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
def test_the_text_of_a_mistake_is_in_its_file_once_and_the_changed_file_compiles(mistake: Mistake) -> None:
    for change in mistake.changes:
        before = (ROOT / change.path).read_text()

        after = change.applied_to(before)

        assert after != before
        if change.path.suffix == ".py":
            compile(after, change.path, "exec")


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
def test_the_tests_that_must_notice_a_mistake_are_there(mistake: Mistake) -> None:
    assert [test for test in mistake.caught_by if not is_there(test)] == []
    assert mistake.caught_by


def test_there_are_enough_mistakes_and_the_page_shows_them() -> None:
    assert len(MISTAKES) >= FEWEST
    assert PAGE.read_text() == "\n".join(page(read_results(), MISTAKES)) + "\n"


def is_there(test: str) -> bool:
    file, _, name = test.partition("::")
    return name.partition("[")[0] in functions(file)


@cache
def functions(file: str) -> set[str]:
    tree = ast.parse((ROOT / file).read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}

"""Whatever a page shows, a reader can type; whatever it points to is there."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.blocks import Block, pages, parts
from tests.docs.session import Session, alike, commands
from tests.house.tree import ROOT

# An example is run from its own file, and what it prints is compared with its page, by a test of its own.
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
SHOWN = {path.read_text() for path in EXAMPLES}


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    session = Session(tmp_path)
    yield session
    session.end()


def unproven(page: Path) -> list[object]:
    """What only this test runs of a page."""
    found = list(parts(page.read_text()))
    shown = [number for number, part in enumerate(found) if isinstance(part, Block) and part.code in SHOWN]
    done = {*shown, *(number + 1 for number in shown)}
    return [part for number, part in enumerate(found) if number not in done]


@pytest.mark.parametrize("page", [page for page in pages() if unproven(page)], ids=named)
def test_what_a_page_shows_can_be_typed_and_comes_out_as_it_says(page: Path, session: Session) -> None:
    for part in unproven(page):
        if not (isinstance(part, Block) and part.proof):
            session.do(part)  # type: ignore[arg-type]


@pytest.mark.parametrize("example", EXAMPLES, ids=named)
def test_an_example_is_run_by_a_test(example: Path) -> None:
    tests = [path.read_text() for path in (ROOT / "tests").rglob("*.py")]

    assert any(re.search(rf"\b{example.stem}(\.py)?[\":]", text) for text in tests)


def proofs() -> list[tuple[str, str]]:
    return [
        (named(page), part.proof)
        for page in pages()
        for part in parts(page.read_text())
        if isinstance(part, Block) and part.proof
    ]


@pytest.mark.parametrize(("page", "proof"), proofs())
def test_a_test_that_a_page_names_is_there(page: str, proof: str) -> None:
    path, _, name = proof.partition("::")

    assert re.search(rf"^(async )?def {name}\(", (ROOT / path).read_text(), re.MULTILINE)


def test_a_command_ends_with_its_line_or_goes_on_behind_a_backslash() -> None:
    code = "$ tape tail \\\n    --json   # a comment\n1\n2\n$ tape doctor\n"

    assert list(commands(code)) == [("tape tail --json", "1\n2\n"), ("tape doctor", "")]


@pytest.mark.parametrize(
    ("wanted", "came", "is_alike"),
    [
        ("a\n", "a\n", True),
        ("a…c\n", "a b c\n", True),
        ("a\n", "b\n", False),
        ("a\n…", "a\nb\n", True),
        ("a", "ab", False),
    ],
)
def test_an_ellipsis_stands_for_anything(wanted: str, came: str, is_alike: bool) -> None:
    assert alike(wanted, came) is is_alike

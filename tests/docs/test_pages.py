"""Whatever a page shows, a reader can type; whatever it points to is there."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.tree import ROOT
from tests.docs.blocks import Block, NeitherRunNorShown, Part, pages, parts
from tests.docs.session import Session, alike, commands

# An example is run from its own file, and what it prints is compared with its page, by a test of its own.
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
SHOWN = {path.read_text() for path in EXAMPLES}


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.fixture
def session(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Session]:
    session = Session(tmp_path, request.getfixturevalue)
    yield session
    session.end()


def unproven(page: Path) -> list[Part]:
    """What only this test runs of a page."""
    found = list(parts(page.read_text()))
    shown = [number for number, part in enumerate(found) if isinstance(part, Block) and part.code in SHOWN]
    done = {*shown, *(number + 1 for number in shown)}
    return [part for number, part in enumerate(found) if number not in done]


@pytest.mark.parametrize("page", [page for page in pages() if unproven(page)], ids=named)
def test_what_a_page_shows_can_be_typed_and_comes_out_as_it_says(page: Path, session: Session) -> None:
    for part in unproven(page):
        session.do(part)


@pytest.mark.parametrize("page", pages(), ids=named)
def test_a_file_that_a_page_shows_is_used_by_what_follows(page: Path) -> None:
    found = list(parts(page.read_text()))
    files = [(number, part.file) for number, part in enumerate(found) if isinstance(part, Block) and part.file]
    typed = [part.code if isinstance(part, Block) else "" for part in found]

    assert [name for number, name in files if Path(name).stem not in "".join(typed[number + 1 :])] == []


@pytest.mark.parametrize(
    "code", ["```\nls\n```", "```bash\nls\n```", "```toml\na = 1\n```", "A.\n\n    ls\n", "~~~\nls\n~~~"]
)
@pytest.mark.parametrize("before", ["", "- In a list:\n  "])
def test_a_block_that_nobody_runs_and_that_does_not_say_so_is_refused(before: str, code: str) -> None:
    with pytest.raises(NeitherRunNorShown, match="nobody runs"):
        list(parts(before + code.replace("\n", "\n  " if before else "\n")))


def test_a_block_that_says_it_is_to_be_looked_at_is_not_run() -> None:
    assert list(parts("```text\nls\n```\n")) == []


def test_output_that_nothing_has_said_is_refused(session: Session) -> None:
    with pytest.raises(AssertionError, match="nothing has run"):
        session.do(Block(language="console", code="1\n"))


@pytest.mark.parametrize("example", EXAMPLES, ids=named)
def test_an_example_is_run_by_a_test(example: Path) -> None:
    tests = [path.read_text() for path in (ROOT / "tests").rglob("*.py")]

    assert any(re.search(rf"\b{example.stem}(\.py)?[\":]", text) for text in tests)


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

"""A reader who types what a rendered page shows gets what it shows."""

import re
from pathlib import Path

import pytest

from tests.architecture.tree import ROOT
from tests.docs.blocks import WITH_CODE, WITH_SPARK, Block, UnknownBlock, blocks, paths
from tests.docs.session import Session, commands, matches
from tools.docs.site import Page, place, render

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
SHOWN = {
    "first.py": "README.md",
    "broker.py": "docs/broker.md",
    "forks.py": "docs/forks.md",
    "runs.py": "docs/runs.md",
    "treasury.py": "docs/runs.md",
    "outbox.py": "docs/outbox.md",
    "streaming.py": "docs/history.md",
}


@pytest.mark.parametrize("path", sorted({*WITH_CODE} - {*WITH_SPARK}), ids=str)
def test_a_reader_who_types_what_a_page_shows_gets_what_it_shows(path: Path, site: Path, session: Session) -> None:
    session.follow(blocks((site / place(path)).read_text()))


@pytest.mark.parametrize("path", WITH_CODE, ids=str)
def test_a_file_that_a_page_saves_is_used_below(path: Path, site: Path) -> None:
    found = blocks((site / place(path)).read_text())
    saved = [(number, block.file) for number, block in enumerate(found) if block.file]

    unused = [
        name for number, name in saved if Path(name).stem not in "".join(block.code for block in found[number + 1 :])
    ]
    assert unused == []


@pytest.mark.parametrize("path", paths(), ids=str)
def test_a_page_hides_nothing(path: Path) -> None:
    assert "<!--" not in (ROOT / path).read_text()


@pytest.mark.parametrize(
    "code", ["```\nls\n```", "```bash\nls\n```", "```toml\na = 1\n```", "A.\n\n    ls\n", "~~~\nls\n~~~"]
)
@pytest.mark.parametrize("before", ["", "- In a list:\n  "])
def test_a_block_that_is_neither_run_nor_text_is_refused(before: str, code: str) -> None:
    with pytest.raises(UnknownBlock, match="is not run"):
        rendered_blocks(before + code.replace("\n", "\n  " if before else "\n"))


def test_a_block_of_text_is_not_run() -> None:
    assert rendered_blocks("```text\nls\n```\n") == []


def test_the_sentence_above_a_block_names_its_file() -> None:
    text = "Save this as `a.toml`:\n\n```toml\nx = '<1>'\n```\n\nIt is read.\n\n```console\n$ ls\n```\n"

    assert rendered_blocks(text) == [
        Block(language="toml", code="x = '<1>'\n", file="a.toml"),
        Block(language="console", code="$ ls\n"),
    ]


def test_output_that_no_program_has_printed_is_refused(session: Session) -> None:
    with pytest.raises(AssertionError, match="no program ran"):
        session.do(Block(language="console", code="1\n"))


@pytest.mark.parametrize(("example", "path"), SHOWN.items())
def test_a_page_shows_its_example_as_it_is(example: str, path: str, site: Path) -> None:
    found = blocks((site / place(Path(path))).read_text())

    assert (ROOT / "examples" / example).read_text() in [block.code for block in found]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_an_example_is_run_by_a_test(example: Path) -> None:
    tests = [path.read_text() for path in (ROOT / "tests").rglob("*.py")]

    assert any(re.search(rf"\b{example.stem}(\.py)?[\":]", text) for text in tests)


def test_a_command_continues_after_a_backslash() -> None:
    code = "$ tape tail \\\n    --json   # a comment\n1\n2\n$ tape doctor\n"

    assert list(commands(code)) == [("tape tail --json", "1\n2\n"), ("tape doctor", "")]


@pytest.mark.parametrize(
    ("shown", "printed", "is_match"),
    [
        ("a\n", "a\n", True),
        ("a…c\n", "a b c\n", True),
        ("a\n", "b\n", False),
        ("a\n…", "a\nb\n", True),
        ("a", "ab", False),
    ],
)
def test_an_ellipsis_stands_for_anything(shown: str, printed: str, is_match: bool) -> None:
    assert matches(shown, printed) is is_match


def rendered_blocks(text: str) -> list[Block]:
    return blocks(render(Page(path=Path("x.md"), text=text), {}))

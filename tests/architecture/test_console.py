"""The page's files: small, ours or with their licence, and without a way to turn a text into markup."""

import re
from hashlib import sha256
from pathlib import Path

import pytest

from tests.architecture.tree import PACKAGE

CONSOLE = PACKAGE / "console"
VENDOR = CONSOLE / "vendor"
OURS = sorted(path for pattern in ("*.js", "*.css", "*.html") for path in CONSOLE.glob(pattern))
MARKUP = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|dangerously|srcdoc")
ELSEWHERE = re.compile(r"https?://(?!www\.w3\.org/2000/svg)")
LICENCE = re.compile(r"\]\(([a-z]+\.LICENSE\.txt)\)")
MOST_LINES = 300


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.name)
def test_a_file_of_the_page_is_short(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= MOST_LINES


def test_a_module_of_the_page_begins_with_what_it_is() -> None:
    assert [path.name for path in OURS if path.suffix == ".js" and not path.read_text().startswith("// ")] == []


def test_no_code_of_ours_turns_a_text_into_markup_or_script() -> None:
    assert [f"{path.name}: {found[0]}" for path in OURS for found in MARKUP.finditer(path.read_text())] == []


def test_the_page_names_nothing_outside_this_server() -> None:
    assert [f"{path.name}: {found[0]}" for path in OURS for found in ELSEWHERE.finditer(path.read_text())] == []


def test_every_file_that_is_not_ours_is_listed_unchanged_with_its_licence() -> None:
    listed = (VENDOR / "README.md").read_text().splitlines()
    files = [path for path in VENDOR.iterdir() if path.suffix in (".css", ".js")]

    rows = {path: [line for line in listed if line.startswith(f"| `{path.name}`")] for path in files}

    assert all(len(row) == 1 and sha256(path.read_bytes()).hexdigest() in row[0] for path, row in rows.items())
    assert all(LICENCE.findall(row[0]) for row in rows.values())


def test_every_licence_that_is_named_is_there_in_full() -> None:
    named = set(LICENCE.findall((VENDOR / "README.md").read_text()))

    assert named == {path.name for path in VENDOR.glob("*.txt")}
    assert all(len((VENDOR / name).read_text()) > 1_000 for name in named)

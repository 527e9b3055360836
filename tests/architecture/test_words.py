"""The repository speaks the field's language: none of the words in words.txt stands in it."""

import re
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.tree import ROOT, files

LIST = Path(__file__).with_name("words.txt")
COINED = frozenset(LIST.read_text().split())
PLACES = ("src", "docs", "tests", "examples", "README.md", "CONTRIBUTING.md", "CHANGELOG.md")
WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def test_no_coined_word_stands_in_the_repository() -> None:
    found = [f"{path.relative_to(ROOT)}: {word}" for path in checked() for word in sorted(coined(path))]

    assert found == []


def checked() -> Iterator[Path]:
    """The files that people read."""
    for place in (ROOT / name for name in PLACES):
        for path in files(place) if place.is_dir() else [place]:
            if path != LIST:
                yield path


def coined(path: Path) -> set[str]:
    """The coined words in a file's name and text, in prose and inside identifiers."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return set()
    return {word.lower() for word in WORD.findall(f"{path.name}\n{text}")} & COINED

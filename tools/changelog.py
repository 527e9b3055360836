"""Writes the section *Unreleased* of CHANGELOG.md from newsfragments/; with a version, makes it a release.

`python -m tools.changelog` or `python -m tools.changelog 1.2.0`.
"""

import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CHANGELOG = ROOT / "CHANGELOG.md"
FRAGMENTS = ROOT / "newsfragments"
KINDS = ("added", "changed", "deprecated", "removed", "fixed", "security")
UNRELEASED = re.compile(r"^## Unreleased\n.*?(?=^## |\Z)", re.DOTALL | re.MULTILINE)


def fragments(folder: Path = FRAGMENTS) -> list[Path]:
    return sorted(path for path in folder.glob("*.md") if path.name != "README.md")


def section(title: str, files: list[Path]) -> str:
    """The fragments as one section, grouped by kind."""
    return "\n".join(_lines(title, files)) + "\n\n"


def _lines(title: str, files: list[Path]) -> Iterator[str]:
    yield f"## {title}"
    for kind in KINDS:
        texts = [" ".join(path.read_text(encoding="utf-8").split()) for path in files if path.suffixes[0] == f".{kind}"]
        if texts:
            yield from ("", f"### {kind.capitalize()}", "", *(f"- {text}" for text in texts))


def updated(changelog: str, files: list[Path]) -> str:
    """The changelog with the fragments as its section *Unreleased*."""
    return UNRELEASED.sub(lambda _: section("Unreleased", files), changelog).rstrip("\n") + "\n"


def released(changelog: str, files: list[Path], version: str, date: str) -> str:
    """The changelog with the fragments as a release below an empty section *Unreleased*."""
    release = section(f"{version} ({date})", files)
    return UNRELEASED.sub(lambda _: f"## Unreleased\n\n{release}", changelog).rstrip("\n") + "\n"


def main(version: str = "") -> None:
    files, changelog = fragments(), CHANGELOG.read_text(encoding="utf-8")
    if not version:
        CHANGELOG.write_text(updated(changelog, files), encoding="utf-8")
        return
    CHANGELOG.write_text(released(changelog, files, version, f"{datetime.now(UTC):%Y-%m-%d}"), encoding="utf-8")
    for path in files:
        path.unlink()


if __name__ == "__main__":
    main(*sys.argv[1:])

"""The code blocks of a rendered page, as a reader of the site sees them.

A block is run (`python`, `console`, `javascript`), or it is text to look at (`text`), or it is a file: the paragraph
above a file ends with "Save this as NAME:". A block of any other kind is an error.
"""

import re
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

from tests.architecture.tree import ROOT

RUN = ("python", "console", "javascript")
SHOWN = "text"
FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
SPARK = re.compile(r"\bopen_spark\b|\btape (lake|reaction (dry-run|backfill)|run sweep)\b")
SAVED = re.compile(r"Save this as (\S+):$")
ABOVE = ("p", "li", "h1", "h2", "h3", "table", "ul", "ol", "pre")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A code block; with a file name it is saved and not run."""

    language: str
    code: str
    file: str | None = None


class UnknownBlock(AssertionError):
    """A code block that is neither run, nor saved, nor marked as text."""


def paths() -> list[Path]:
    """The Markdown files whose code is run; an ADR shows what was measured at its time."""
    found = [path for path in (ROOT / "docs").rglob("*.md") if "adr" not in path.parts]
    found += [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", ROOT / "deploy" / "README.md"]
    return sorted(path.relative_to(ROOT) for path in found)


def _fences(path: Path) -> str:
    return "".join(FENCE.findall((ROOT / path).read_text()))


WITH_CODE = [path for path in paths() if _fences(path)]
WITH_SPARK = [path for path in WITH_CODE if SPARK.search(_fences(path))]


def blocks(html: str) -> list[Block]:
    """The blocks that are run or saved, in the order of the page."""
    parser = _Parser()
    parser.feed(html)
    return [block for block in map(_checked, parser.found) if block.language != SHOWN]


def _checked(block: Block) -> Block:
    if block.language not in (*RUN, SHOWN) and block.file is None:
        raise UnknownBlock(f"a block of {block.language or 'no language'!r} is not run:\n{block.code}")
    return block


class _Parser(HTMLParser):
    """Collects each `<pre><code>` with the text of the paragraph directly above it."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[Block] = []
        self._above: list[str] = []
        self._code: list[str] = []
        self._file: str | None = None
        self._is_in_pre = False
        self._language = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "code" and self._is_in_pre:
            self._language = (dict(attrs).get("class") or "").removeprefix("language-")
        elif tag in ABOVE:
            saved = SAVED.search("".join(self._above).strip())
            self._file = saved[1] if saved else None
            self._above, self._code, self._is_in_pre = [], [], tag == "pre"

    def handle_endtag(self, tag: str) -> None:
        if tag == "pre":
            self.found.append(Block(language=self._language, code="".join(self._code), file=self._file))
            self._language, self._is_in_pre = "", False

    def handle_data(self, data: str) -> None:
        (self._code if self._is_in_pre else self._above).append(data)

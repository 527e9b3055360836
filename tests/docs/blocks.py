"""The code of a page, and what hidden comments before it say about running it.

A block is run (`python`, `console`, `javascript`), or it is a file, or it says that it is to be looked at (`text`);
there is no other kind. `<!-- before … -->` is code that runs first, in the language of the block it stands above.
`<!-- file NAME -->` says that the block is a file, to be there for what follows. `<!-- serve -->` has a server running
from there on, `<!-- spark -->` a Spark session that commands and programs share.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

from tests.architecture.tree import ROOT

RUN = ("python", "console", "javascript")
SHOWN = "text"
SAID = re.compile(r"<!-- (before|file|serve|spark)\b(.*?)-->", re.S)

_markdown = MarkdownIt("commonmark", {"html": True})


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Code as it is shown, and how it is to be run."""

    language: str
    code: str
    before: str = ""
    file: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Serve:
    """From here on there is a server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spark:
    """From here on there is a Spark session."""


Part = Block | Serve | Spark


class NeitherRunNorShown(AssertionError):
    """Code that nobody runs, and that does not say that it is not meant to be."""


def pages() -> list[Path]:
    """Every page a reader may follow; a decision's page shows what was measured then."""
    found = [path for path in (ROOT / "docs").rglob("*.md") if "adr" not in path.parts and "seeds" not in path.parts]
    return sorted([*found, ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "deploy" / "README.md"])


def parts(text: str) -> Iterator[Part]:
    """What is to be run of a page, in order."""
    said: dict[str, str] = {}
    for token in _markdown.parse(text):
        if token.type == "html_block":
            said |= dict(SAID.findall(token.content))
            yield from _places(said)
        elif token.type in ("fence", "code_block"):
            block = _block(token, said)
            said = {}
            if block.language != SHOWN:
                yield block


def _places(said: dict[str, str]) -> Iterator[Serve | Spark]:
    if said.pop("serve", None) is not None:
        yield Serve()
    if said.pop("spark", None) is not None:
        yield Spark()


def _block(token: Token, said: dict[str, str]) -> Block:
    file = said.get("file", "").strip() or None
    language = token.info.strip()
    if language not in (*RUN, SHOWN) and file is None:
        raise NeitherRunNorShown(f"a block of {language or 'no language'!r} that nobody runs:\n{token.content}")
    return Block(language=language, code=token.content, before=said.get("before", "").strip("\n"), file=file)

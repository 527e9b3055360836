"""The code of a page, and what hidden comments before it say about running it.

`<!-- before … -->` is code that runs first, in the language of the block it stands above. `<!-- file NAME -->` says
that the block is a file, to be there for what follows. `<!-- serve -->` has a server running from there on.
`<!-- proven by TEST -->` names the test that runs it, where that takes more than a page should.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.house.tree import ROOT

PART = re.compile(
    r"<!-- (?P<word>before|file|serve|proven by)\b(?P<rest>.*?)-->|^```(?P<language>\w*)\n(?P<code>.*?)^```$",
    re.M | re.S,
)
RUN = ("python", "console")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Code as it is shown, and how it is to be run."""

    language: str
    code: str
    before: str = ""
    file: str | None = None
    proof: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Serve:
    """From here on there is a server."""


@dataclass(slots=True)
class _Said:
    before: str = ""
    file: str | None = None
    proof: str | None = None
    parts: list[Block | Serve] = field(default_factory=list)


def pages() -> list[Path]:
    """Every page a reader may follow; a decision's page shows what was measured then."""
    found = [path for path in (ROOT / "docs").rglob("*.md") if "adr" not in path.parts and "seeds" not in path.parts]
    return sorted([*found, ROOT / "README.md"])


def parts(text: str) -> Iterator[Block | Serve]:
    """What is to be run of a page, in order."""
    said = _Said()
    for part in PART.finditer(text):
        match part["word"]:
            case "before":
                said.before = part["rest"].strip("\n")
            case "file":
                said.file = part["rest"].strip()
            case "proven by":
                said.proof = part["rest"].strip()
            case "serve":
                yield Serve()
            case _:
                block = Block(
                    language=part["language"], code=part["code"], before=said.before, file=said.file, proof=said.proof
                )
                said = _Said()
                if block.language in RUN or block.file:
                    yield block

"""SQL by name: a .sql file has a `-- name:` line before each statement."""

import re
from functools import cache
from importlib.resources import files
from typing import Final

_BLOCK: Final = re.compile(r"^-- name: (\w+)\n(.*?)(?=^-- name:|\Z)", re.MULTILINE | re.DOTALL)


@cache
def statements(dialect: str, file: str) -> dict[str, str]:
    """Every statement of a file, by name, without comments and closing semicolons."""
    text = files("tape.store").joinpath(dialect, file).read_text(encoding="utf-8")
    return {name: _bare(block) for name, block in _BLOCK.findall(text)}


@cache
def migrations(dialect: str, line: str = "") -> tuple[tuple[int, str, str], ...]:
    """The steps of a schema, the journal's or that in a subfolder: number, name and script."""
    folder = files("tape.store").joinpath(dialect, "schema", line)
    steps = [file for file in folder.iterdir() if file.name.endswith(".sql")]
    named = sorted((file.name.removesuffix(".sql"), file.read_text(encoding="utf-8")) for file in steps)
    return tuple((int(name[:4]), name[5:], text) for name, text in named)


def _bare(block: str) -> str:
    lines = (line for line in block.splitlines() if line.strip() and not line.lstrip().startswith("--"))
    return "\n".join(lines).strip().removesuffix(";")

"""The seeded mistakes: a text of the product, what a careless change makes of it, and the tests that must notice."""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent.parent
TABLES: Final = Path(__file__).parent
PACKAGE: Final = Path("src") / "tape"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A text in a file below src/tape that becomes another."""

    file: str
    text: str
    becomes: str

    @property
    def path(self) -> Path:
        """Its file in a repository."""
        return PACKAGE / self.file

    def applied_to(self, source: str) -> str:
        """The changed source; the text that is replaced must be there once."""
        if (found := source.count(self.text)) != 1:
            raise ValueError(f"{self.text!r} is {found} times in {self.path}, not once")
        return source.replace(self.text, self.becomes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    """Changes that belong together and break an invariant: with them, one of the tests `caught_by` must fail."""

    name: str
    area: str
    invariant: str
    changes: tuple[Change, ...]
    caught_by: tuple[str, ...]


def read_mistakes() -> list[Mistake]:
    """All mistakes, area by area; a name occurs once."""
    found = [mistake for table in sorted(TABLES.glob("*.toml")) for mistake in _read(table)]
    names = [mistake.name for mistake in found]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"several mistakes are called {sorted(twice)}")
    return found


def _read(table: Path) -> Iterator[Mistake]:
    for name, fields in tomllib.loads(table.read_text(encoding="utf-8")).items():
        first = {field: fields[field] for field in ("file", "text", "becomes")}
        yield Mistake(
            name=name,
            area=table.stem,
            invariant=fields["invariant"],
            changes=tuple(Change(**change) for change in (first, *fields.get("also", ()))),
            caught_by=tuple(fields["caught_by"]),
        )

"""The shape of the source: small modules, named by the domain's words, finished, with SQL in one room."""

import ast
import re
from pathlib import Path

import pytest

from tests.architecture.tree import PACKAGE, modules

MOST_LINES = 400
NAMELESS = {"utils", "helpers", "common", "base", "manager"}
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|NotImplementedError)\b")
STATEMENT = re.compile(r"\b(SELECT|INSERT INTO|UPDATE \w+ SET|DELETE FROM|CREATE TABLE) ")
MIGRATION = re.compile(r"(\d{4})(_[a-z0-9]+){2,}\.sql")


def migration_lines() -> list[Path]:
    """Every folder of migrations: one for each dialect and line."""
    return sorted({path.parent for path in PACKAGE.glob("store/*/schema/**/*.sql")})


def test_a_module_over_400_lines_is_two_modules() -> None:
    lengths = {str(path.relative_to(PACKAGE)): len(path.read_text().splitlines()) for path in modules()}

    too_long = {name: length for name, length in lengths.items() if length > MOST_LINES}

    assert too_long == {}


def test_a_module_is_named_by_what_it_is_about() -> None:
    names = {part for path in PACKAGE.rglob("*") for part in (path.stem, path.name)}

    assert names & NAMELESS == set()


def test_nothing_in_the_source_is_left_for_later() -> None:
    sources = [*modules(), *PACKAGE.rglob("*.sql")]

    unfinished = [f"{path.relative_to(PACKAGE)}: {found}" for path in sources for found in marks(path.read_text())]

    assert unfinished == []


def test_sql_lives_in_the_store_only() -> None:
    outside = [path for path in modules() if not path.is_relative_to(PACKAGE / "store")]

    literals = [f"{path.relative_to(PACKAGE)}: {text}" for path in outside for text in statements(path.read_text())]

    assert literals == []


@pytest.mark.parametrize("line", migration_lines(), ids=lambda line: str(line.relative_to(PACKAGE)))
def test_migrations_are_numbered_without_a_hole(line: Path) -> None:
    names = sorted(path.name for path in line.glob("*.sql"))

    numbers = [int(found[1]) if (found := MIGRATION.fullmatch(name)) else name for name in names]

    assert numbers == list(range(1, len(names) + 1))


def marks(source: str) -> list[str]:
    return [found[0] for found in UNFINISHED.finditer(source)]


def statements(source: str) -> list[str]:
    constants = [node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant)]
    return [value for value in constants if isinstance(value, str) and STATEMENT.search(value)]

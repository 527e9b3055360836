"""Soaks of small suites, in a folder of the test."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.soak.suites import Suite

MakeSuite: TypeAlias = Callable[..., Suite]


@pytest.fixture
def make_suite(tmp_path: Path) -> MakeSuite:
    """Writes tests into a file, and gives the suite of it."""

    def make(name: str, source: str, *, minutes: float = 20.0, workers: int = 1) -> Suite:
        folder = tmp_path / "suites"
        folder.mkdir(exist_ok=True)
        (folder / "pytest.ini").write_text("[pytest]\naddopts = --dist loadfile -p no:schemathesis -p no:valkey\n")
        (folder / "conftest.py").write_text("def pytest_addoption(parser):\n    parser.addoption('--scale')\n")
        path = folder / f"{name}.py"
        path.write_text(source)
        return Suite(name=name, tests=(str(path),), scale=3, minutes=minutes, workers=workers)

    return make

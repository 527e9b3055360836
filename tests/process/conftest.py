"""Fixtures of the process tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.process.processes import Processes


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    with Processes(tmp_path) as processes:
        yield processes

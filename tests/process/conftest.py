"""What the tests with processes share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.process.crew import Crew


@pytest.fixture
def crew(tmp_path: Path) -> Iterator[Crew]:
    with Crew(tmp_path) as crew:
        yield crew

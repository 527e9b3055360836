"""What the pages show is what happens."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.tree import ROOT

PAGES = {
    "first.py": "README.md",
    "broker.py": "docs/broker.md",
    "forks.py": "docs/forks.md",
    "runs.py": "docs/runs.md",
    "treasury.py": "docs/runs.md",
    "outbox.py": "docs/outbox.md",
}

shown = pytest.mark.parametrize(("example", "page"), PAGES.items())


@shown
def test_a_page_shows_its_example_as_it_is(example: str, page: str) -> None:
    assert f"```python\n{(ROOT / 'examples' / example).read_text()}```" in (ROOT / page).read_text()


@shown
def test_an_example_prints_what_its_page_says(example: str, page: str, tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "examples" / example)]

    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)

    assert f"```console\n{ended.stdout}```" in (ROOT / page).read_text()

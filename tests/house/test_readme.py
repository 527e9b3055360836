"""What the README shows is what happens."""

import subprocess
import sys
from pathlib import Path

from tests.house.tree import ROOT

EXAMPLE = ROOT / "examples" / "first.py"


def test_the_readme_shows_the_example_as_it_is() -> None:
    assert f"```python\n{EXAMPLE.read_text()}```" in (ROOT / "README.md").read_text()


def test_the_example_prints_what_the_readme_says(tmp_path: Path) -> None:
    ended = subprocess.run([sys.executable, EXAMPLE], cwd=tmp_path, capture_output=True, text=True, check=True)

    assert f"```console\n{ended.stdout}```" in (ROOT / "README.md").read_text()

"""The page on history shows a streaming job that runs."""

import os
import subprocess
import sys
from pathlib import Path

from tests.architecture.tree import ROOT

EXAMPLE, PAGE = ROOT / "examples" / "streaming.py", ROOT / "docs" / "history.md"


def test_the_page_shows_the_streaming_job_as_it_is() -> None:
    assert f"```python\n{EXAMPLE.read_text()}```" in PAGE.read_text()


def test_the_streaming_job_goes_on_where_it_was_and_says_what_the_page_says(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}

    ended = subprocess.run(
        [sys.executable, str(EXAMPLE)], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )

    assert ended.returncode == 0, ended.stderr[-2_000:]
    assert f"```console\n{ended.stdout}```" in PAGE.read_text()

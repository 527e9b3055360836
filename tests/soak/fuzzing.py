"""Every fuzz target for a while, each in a process of the environment that has atheris; `make soak` builds it."""

import re
import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests import figures
from tests.conftest import Scale
from tests.fuzz.targets import TARGETS

ROOT: Final = Path(__file__).resolve().parents[2]
PYTHON: Final = ROOT / ".venv-fuzz" / "bin" / "python"
SECONDS: Final = 10
INPUTS: Final = re.compile(r"stat::number_of_executed_units: *(\d+)")


@pytest.mark.parametrize("name", TARGETS)
def test_no_input_breaks_the_property_of_a_target(name: str, scale: Scale) -> None:
    command = [str(PYTHON), "-m", "tests.fuzz", name, str(scale(SECONDS))]

    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    figures.add(f"inputs of {name}", sum(map(int, INPUTS.findall(ended.stdout + ended.stderr))))
    assert ended.returncode == 0, ended.stdout[-4_000:] + ended.stderr[-4_000:]

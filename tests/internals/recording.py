"""Runs a program that records a request path, in a process of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.internals.page import RecordedPath
from tests.internals.recorder import Call, Function

DEADLINE_S = 300


def record(name: str, store: str, folder: Path, environment: Mapping[str, str]) -> RecordedPath:
    output = folder / f"{name}.json"
    command = [sys.executable, "-m", "tests.internals.programs", name, store, str(output)]
    ours = {key: value for key, value in os.environ.items() if key != "SPARK_HOME"}  # most users have none
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=DEADLINE_S, check=False, env={**ours, **environment}
    )
    assert output.exists(), f"{name} was not recorded: {ended.stderr}"
    *recordings, idle = [[call(each) for each in calls] for calls in json.loads(output.read_text())]
    return RecordedPath(recordings, idle)


def call(fields: dict[str, dict[str, str] | int | None]) -> Call:
    function, caller, depth = fields["function"], fields["caller"], fields["depth"]
    assert isinstance(function, dict) and isinstance(depth, int) and not isinstance(caller, int)
    return Call(Function(**function), None if caller is None else Function(**caller), depth)

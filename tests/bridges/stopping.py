"""A command that gets SIGTERM while its peer is unavailable."""

import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.deadlines import DEADLINE_S
from tests.server.server import clean_environment


def stop_while_unavailable(folder: Path, config: str, command: Sequence[str]) -> Any:
    """The JSON output of a command that got SIGTERM once it had logged that its peer is unavailable."""
    environment = {**clean_environment(), "TAPE_CONFIG": config, "TAPE_DATA": str(folder)}
    started = [sys.executable, "-m", "tape.cli.main", *command, "--json"]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(started, env=environment, **pipes) as process:
        try:
            assert process.stderr is not None
            assert any("bridge.unavailable" in line for line in process.stderr), (
                "it never logged that its peer is unavailable"
            )
            process.send_signal(signal.SIGTERM)
            output, errors = process.communicate(timeout=DEADLINE_S)
        finally:
            process.kill()
    assert process.returncode == 0, errors
    return json.loads(output)

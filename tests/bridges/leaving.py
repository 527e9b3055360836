"""A command whose peer is away, and which is asked to leave."""

import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.patience import PATIENCE_S
from tests.server.server import clean_environment


def left(folder: Path, config: str, command: Sequence[str]) -> Any:
    """What a command says that was sent a SIGTERM as soon as it had noted that its peer is away."""
    environment = {**clean_environment(), "TAPE_CONFIG": config, "TAPE_DATA": str(folder)}
    started = [sys.executable, "-m", "tape.cli.main", *command, "--json"]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(started, env=environment, **pipes) as process:
        try:
            assert process.stderr is not None
            assert any("bridge.away" in line for line in process.stderr), "it never noted that its peer is away"
            process.send_signal(signal.SIGTERM)
            said, complaints = process.communicate(timeout=PATIENCE_S)
        finally:
            process.kill()
    assert process.returncode == 0, complaints
    return json.loads(said)

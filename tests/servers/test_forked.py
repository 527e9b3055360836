"""A forked program is a process like one that an interpreter was started for."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.servers import forked
from tests.servers.forked import Forked

PROGRAM = """
import json, os, sys
umask = os.umask(0o22)
files = [os.readlink(f"/proc/self/fd/{number}") for number in range(3)]
is_leader = os.getsid(0) == os.getpid()
print(json.dumps([__name__, sys.argv, os.getcwd(), sys.path[0], dict(os.environ), umask, files, is_leader]))
sys.exit(7)
"""
ENVIRONMENT = {"PATH": os.environ["PATH"], "LC_CTYPE": "C.UTF-8", "ONE": "1"}


def start(folder: Path, program: str, *arguments: str) -> Forked:
    (folder / "program.py").write_text(program)
    with (folder / "output").open("wb") as output:
        return forked.start(
            "program", arguments, folder=folder, environment=ENVIRONMENT,
            output=output.fileno(), errors=output.fileno(),
        )  # fmt: skip


def test_a_forked_program_finds_what_an_interpreter_would_give_it(tmp_path: Path) -> None:
    code = start(tmp_path, PROGRAM, "a", "b c").wait()
    in_fork = json.loads((tmp_path / "output").read_text())

    with (tmp_path / "output").open("wb") as output:
        started = subprocess.run(
            [sys.executable, "-m", "program", "a", "b c"], cwd=tmp_path, env=ENVIRONMENT, stdin=subprocess.DEVNULL,
            stdout=output, stderr=output, start_new_session=True, check=False,
        )  # fmt: skip

    assert in_fork == json.loads((tmp_path / "output").read_text())
    assert code == started.returncode == 7


def test_a_killed_program_ends_with_its_signal(tmp_path: Path) -> None:
    process = start(tmp_path, "import time; time.sleep(600)")

    assert process.poll() is None
    os.killpg(process.pid, signal.SIGKILL)

    assert process.wait() == -signal.SIGKILL

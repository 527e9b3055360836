"""A forked program is a process like one that an interpreter was started for."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

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
    with (folder / "output").open("wb") as output, (folder / "errors").open("wb") as errors:
        return forked.start(
            "program", arguments, folder=folder, environment=ENVIRONMENT,
            output=output.fileno(), errors=errors.fileno(),
        )  # fmt: skip


def test_a_forked_program_finds_what_an_interpreter_would_give_it(tmp_path: Path) -> None:
    code = start(tmp_path, PROGRAM, "a", "b c").wait()
    in_fork = json.loads((tmp_path / "output").read_text())

    with (tmp_path / "output").open("wb") as output, (tmp_path / "errors").open("wb") as errors:
        started = subprocess.run(
            [sys.executable, "-m", "program", "a", "b c"], cwd=tmp_path, env=ENVIRONMENT, stdin=subprocess.DEVNULL,
            stdout=output, stderr=errors, start_new_session=True, check=False,
        )  # fmt: skip

    assert in_fork == json.loads((tmp_path / "output").read_text())
    assert code == started.returncode == 7


ENDINGS = {
    "at its end": "pass",
    "with a code": "raise SystemExit(5)",
    "with a text": "raise SystemExit('no')",
    "by an error": "1 / 0",
    "by an interrupt": "raise KeyboardInterrupt",
    "after a thread": "import threading; threading.Timer(0.1, print, ['thread']).start()",
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_forked_program_ends_as_in_an_interpreter(tmp_path: Path, ending: str) -> None:
    program = f"import atexit; atexit.register(print, 'exit function'); print('first'); {ENDINGS[ending]}"
    code = start(tmp_path, program).wait()

    command = [sys.executable, "-m", "program"]
    started = subprocess.run(command, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, check=False)

    assert (code, (tmp_path / "output").read_text()) == (started.returncode, started.stdout)
    assert (tmp_path / "errors").read_text().splitlines()[-1:] == started.stderr.splitlines()[-1:]


def test_a_killed_program_ends_with_its_signal(tmp_path: Path) -> None:
    process = start(tmp_path, "import time; time.sleep(600)")

    assert process.poll() is None
    os.killpg(process.pid, signal.SIGKILL)

    assert process.wait() == -signal.SIGKILL

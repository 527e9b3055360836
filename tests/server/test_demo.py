"""`tape demo`: its story is asserted, it ends by itself, and its console stays if it is asked to."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tape.cli.demo import work as demo_work
from tape.cli.main import run
from tests.deadlines import DEADLINE_S
from tests.server.server import clean_environment

DEMO = [sys.executable, "-m", "tape.cli.main", "demo", "--seconds", "2", "--no-lake", "--json"]


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A demo that was asked to stay."""
    environment = {**clean_environment(), "TAPE_DATA": str(tmp_path)}
    with (
        (tmp_path / "log").open("wb") as log,
        subprocess.Popen(
            [*DEMO, "--keep"], cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=log, text=True,
            start_new_session=True,
        ) as process,
    ):  # fmt: skip
        yield process
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)


def test_every_line_of_the_story_is_asserted(tmp_path: Path) -> None:
    environment = {**clean_environment(), "TAPE_DATA": str(tmp_path)}

    done = subprocess.run(DEMO, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    checks = {check["name"]: check["is_kept"] for check in report["checks"]}
    assert report["is_kept"] and report["events"] > 8000
    assert {"reaction", "dead letter", "replay", "outbox", "fork", "what if", "server"} <= checks.keys()
    assert all(checks.values()) and list(tmp_path.iterdir()) == []


def test_a_line_that_does_not_hold_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TAPE_DATA", str(tmp_path))
    monkeypatch.setattr(demo_work, "WRONG", 99)  # then no order dies

    assert run(["demo", "--seconds", "2", "--no-lake"]) == 1

    assert "fail" in capsys.readouterr().out


def test_the_console_stays_until_it_is_interrupted(kept: subprocess.Popen[str], tmp_path: Path) -> None:
    assert kept.stdout is not None
    line = kept.stdout.readline()
    assert line, (tmp_path / "log").read_text()
    report = json.loads(line)

    with httpx.Client(base_url=report["url"], trust_env=False) as http:
        page = http.get("/")
        tasks = http.get("/tasks", params={"status": "done"}).json()["tasks"]
    kept.send_signal(signal.SIGINT)

    assert page.status_code == 200 and len(tasks) == 5 and report["is_kept"]
    assert kept.wait(DEADLINE_S) == 0

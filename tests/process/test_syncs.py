"""The system calls before an append is acknowledged, recorded with strace."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.conftest import Scale
from tests.process.processes import Processes

REQUESTS = 20
WHOLE = re.compile(r"(?P<thread>\d+) +(?P<call>\w+)\(\d+<(?P<file>[^>]*)>(?P<rest>.*)")
RESUMED = re.compile(r"(?P<thread>\d+) +<\.\.\. \w+ resumed>(?P<rest>.*)")


class Call(NamedTuple):
    """A system call that has returned, or has just begun if it writes."""

    name: str
    file: str
    arguments: str


@pytest.fixture
def strace(tmp_path: Path) -> list[str]:
    """The command that watches another one write and sync."""
    probe = ["strace", "-f", "-o", str(tmp_path / "probe"), "true"]
    if shutil.which("strace") is None or subprocess.run(probe, capture_output=True, check=False).returncode != 0:
        pytest.skip("strace is not installed, or may not look at processes here")
    return ["strace", "-f", "-y", "-s", "64", "-e", "trace=pwrite64,write,fsync,fdatasync", "-o"]


def test_p1_what_is_acknowledged_was_synced_before(processes: Processes, strace: list[str], scale: Scale) -> None:
    trace = processes.folder / "trace"

    processes.start(
        "writer", processes.url, processes.log("writer"), "--requests", scale(REQUESTS), under=[*strace, str(trace)]
    ).finish()

    answers = list(unsynced_at_answers(calls(trace), processes.journal.name + "-wal"))
    assert answers == [0] * scale(REQUESTS)


def unsynced_at_answers(calls: Iterator[Call], log: str) -> Iterator[int]:
    """For each answer, how many writes to the log no sync had followed."""
    unsynced = 0
    for call in calls:
        if call.name == "pwrite64" and call.file.endswith(log):
            unsynced += 1
        elif call.name in ("fsync", "fdatasync") and call.file.endswith(log):
            unsynced = 0
        elif call.name == "write" and r"\"ok\"" in call.arguments:
            yield unsynced


def calls(trace: Path) -> Iterator[Call]:
    """Writes when they begin and syncs when they have succeeded."""
    begun: dict[str, Call] = {}
    for line in trace.read_text().splitlines():
        if found := WHOLE.match(line):
            call = Call(found["call"], found["file"], found["rest"])
            begun[found["thread"]] = call
            if "write" in call.name or call.arguments.endswith("= 0"):
                yield call
        elif (found := RESUMED.match(line)) and found["rest"].endswith("= 0"):
            yield begun[found["thread"]]

"""A full disk: appends are refused, nothing acknowledged is lost, and appends succeed when there is room again."""

import resource
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.process import history, log
from tests.process.history import History
from tests.process.log import Op
from tests.process.processes import Child, Processes
from tests.servers.account import Account
from tests.servers.small_disk import mounted_disk

ROOM = 1 << 20
NO_LIMIT = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A disk of 2 MiB, where we may mount one."""
    with mounted_disk(2 * ROOM, Account()) as disk:
        if not disk.is_mounted:
            pytest.skip("only root can mount a small disk, and not everywhere")
        yield disk.folder


def test_a_file_that_may_not_grow_loses_nothing_acknowledged_and_goes_on_when_it_may(processes: Processes) -> None:
    writer = processes.start("writer", processes.url, processes.log("writer"), "--padding", 200)

    resource.prlimit(writer.pid, resource.RLIMIT_FSIZE, (ROOM, resource.RLIM_INFINITY))
    recorded = refuse_then(processes, lambda: resource.prlimit(writer.pid, resource.RLIMIT_FSIZE, NO_LIMIT), writer)

    assert recorded.anomalies("P1", "P2", "P3", "P4", "P5", "P6") == []


def test_a_full_disk_refuses_appends_until_there_is_room_and_loses_nothing_acknowledged(
    tmp_path: Path, small_disk: Path
) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(ROOM))
    with Processes(tmp_path, small_disk / "journal.db") as processes:
        writer = processes.start("writer", processes.url, processes.log("writer"), "--padding", 200)

        recorded = refuse_then(processes, ballast.unlink, writer)

    assert {op.reason for op in recorded.ops["writer"] if op.what not in ("invoke", "ok")} == {"the disk is full"}
    assert recorded.anomalies("P1", "P2", "P3", "P4", "P5", "P6") == []


def refuse_then(processes: Processes, make_room: Callable[[], object], writer: Child) -> History:
    """Appends until there is no room, makes room, and appends some more."""
    processes.wait(lambda: refusals(processes) >= 3, "the disk is full")
    before = len(log.read(processes.log("writer"), Op))
    make_room()
    processes.wait(
        lambda: any(op.what == "ok" for op in log.read(processes.log("writer"), Op)[before:]), "appends go on", 5
    )
    writer.kill()
    return History({"writer": log.read(processes.log("writer"), Op)}, history.rows(processes.journal))


def refusals(processes: Processes) -> int:
    return len([op for op in log.read(processes.log("writer"), Op) if op.what in ("fail", "unknown")])

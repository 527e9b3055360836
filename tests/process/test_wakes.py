"""A reader in another process sees every entry, also when it receives no wake-up: a wake-up is only a hint."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest

from tests.conftest import Scale
from tests.process import log
from tests.process.log import Seen
from tests.process.processes import Processes

ENTRIES = 200


@pytest.mark.parametrize("is_folder", [False, True], ids=["no folder", "no socket"])
def test_p9_losing_every_wake_up_only_delays(processes: Processes, scale: Scale, is_folder: bool) -> None:
    with deaf(processes.journal, is_folder):
        processes.start("tail", processes.url, processes.log("seen"))

        one_by_one = ("--requests", scale(ENTRIES), "--most", 1, "--pause-ms", 7)
        processes.start("writer", processes.url, processes.log("writer"), *one_by_one).finish()
        processes.wait_for_tail()

    assert [seen.global_seq for seen in log.read(processes.log("seen"), Seen)] == [*range(1, scale(ENTRIES) + 1)]


@contextmanager
def deaf(journal: Path, is_folder: bool) -> Iterator[None]:
    """Takes away the place where processes listen, or every socket in it as soon as it is there."""
    folder = journal.with_name(journal.name + ".wake")
    if not is_folder:
        folder.touch()
        yield
        return
    folder.mkdir()
    is_over = Event()
    thread = Thread(target=remove_sockets, args=(folder, is_over))
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def remove_sockets(folder: Path, is_over: Event) -> None:
    while not is_over.wait(0.001):
        for socket in folder.iterdir():
            socket.unlink(missing_ok=True)

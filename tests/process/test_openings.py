"""Processes that create a journal at the same time all get a complete one."""

import time
from random import Random

import pytest

from tests.conftest import Scale
from tests.deadlines import DEADLINE_S
from tests.process import history, workload
from tests.process.log import now_ns
from tests.process.processes import Processes

FILES = 60
OPENERS = 4
UNFINISHED = 3


def test_processes_that_make_a_journal_at_the_same_time_all_get_it(processes: Processes, scale: Scale) -> None:
    start_ns = now_ns() + 500_000_000

    openers = [processes.start("journal_opener", processes.folder, scale(FILES), start_ns) for _ in range(OPENERS)]

    for opener in openers:
        opener.finish(within_s=DEADLINE_S + scale(FILES))


def test_a_journal_whose_creator_was_killed_is_created_by_the_next_process(
    tmp_path_factory: pytest.TempPathFactory, scale: Scale
) -> None:
    makers = [Processes(tmp_path_factory.mktemp("making")) for _ in range(scale(UNFINISHED))]

    heads = [make_in_two_lives(processes) for processes in makers]

    assert heads == [workload.size("writer", 1, 50)] * len(makers)


def make_in_two_lives(processes: Processes) -> int:
    """Where the journal stands when its first writer was killed around the time it made the file."""
    options = (processes.url, processes.log("writer"), "--requests", 1)
    with processes:
        first = processes.start("writer", *options)
        processes.wait(processes.journal.exists, "the file is there")
        time.sleep(Random().uniform(0, 0.03))
        first.kill()
        processes.start("writer", *options).finish()
        return history.head(processes.journal)

"""A tail that is killed and restarted at its last position repeatedly, while the journal grows."""

import time
from random import Random

import pytest

from tests.conftest import Scale
from tests.process import history
from tests.process.history import History
from tests.process.processes import Processes

WRITERS = ["writer0", "writer1"]
DEATHS = 8


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory, scale: Scale) -> History:
    """The history of a tail that died many times, at a random moment each time."""
    with Processes(tmp_path_factory.mktemp("reconnects")) as processes:
        writers = [processes.start("writer", processes.url, processes.log(name), "--pause-ms", 20) for name in WRITERS]
        for _ in range(scale(DEATHS)):
            live_and_die(processes)
        for writer in writers:
            writer.kill()
        processes.start("tail", processes.url, processes.log("seen"))
        processes.wait_for_tail()
        return history.collect(processes.folder, WRITERS)


def test_p6_a_tail_that_resumes_at_its_last_position_misses_nothing(recorded: History) -> None:
    assert recorded.anomalies("P6") == []


def test_p6_a_tail_that_resumes_at_its_last_position_repeats_nothing_and_stays_in_order(recorded: History) -> None:
    assert recorded.anomalies("P5") == []


def live_and_die(processes: Processes) -> None:
    tail = processes.start("tail", processes.url, processes.log("seen"))
    processes.wait_for_line("seen")
    time.sleep(Random().uniform(0, 0.2))
    tail.kill()

"""A tail that is killed and comes back with its last position, over and over, while the journal grows."""

import time
from random import Random

import pytest

from tests.conftest import Scale
from tests.process import history
from tests.process.crew import Crew
from tests.process.history import History

WRITERS = ["writer0", "writer1"]
DEATHS = 8


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory, scale: Scale) -> History:
    """The history of a tail that died many times, at a random moment each time."""
    with Crew(tmp_path_factory.mktemp("reconnects")) as crew:
        writers = [crew.start("writer", crew.url, crew.log(name), "--pause-ms", 20) for name in WRITERS]
        for _ in range(scale(DEATHS)):
            live_and_die(crew)
        for writer in writers:
            writer.kill()
        crew.start("tail", crew.url, crew.log("seen"))
        crew.wait_for_tail()
        return history.collect(crew.folder, WRITERS)


def test_p6_a_tail_that_comes_back_with_its_last_position_misses_nothing(told: History) -> None:
    assert told.missed() == []


def test_p6_a_tail_that_comes_back_with_its_last_position_sees_nothing_twice(told: History) -> None:
    assert told.seen_twice() == []


def test_p6_a_tail_that_comes_back_with_its_last_position_goes_on_in_order(told: History) -> None:
    assert told.late() == []


def live_and_die(crew: Crew) -> None:
    tail = crew.start("tail", crew.url, crew.log("seen"))
    crew.wait_for_line("seen")
    time.sleep(Random().uniform(0, 0.2))
    tail.kill()

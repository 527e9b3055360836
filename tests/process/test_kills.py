"""Eight writers and a tail on one file, with kill -9 among the writers: one scenario, judged law by law."""

import time
from random import Random

import pytest

from tests.conftest import Scale
from tests.process import history
from tests.process.crew import Child, Crew
from tests.process.history import History

WRITERS = [f"writer{number}" for number in range(8)]
KILLS = 16


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory, scale: Scale) -> History:
    """The history of a scenario in which writers die at random, come back, and die for good at the end."""
    with Crew(tmp_path_factory.mktemp("kills")) as crew:
        crew.start("tail", crew.url, crew.log("seen"))
        writers = {name: start(crew, name) for name in WRITERS}
        for _ in range(scale(KILLS)):
            kill_one(crew, writers)
        for writer in writers.values():
            writer.kill()
        crew.wait_for_tail()
        told = history.collect(crew.folder, WRITERS)
    print(f"{len(told.rows):,} entries, {len(told.acknowledged):,} answers, {len(told.in_doubt)} requests in doubt")
    return told


def test_the_scenario_had_what_it_is_about(told: History) -> None:
    retried = [(writer, op) for writer, ops in told.ops.items() for op in ops if op.what == "invoke"]

    assert len(told.acknowledged) > len(WRITERS) and len(retried) > len(told.acknowledged)


def test_p1_nothing_acknowledged_is_lost_to_kill_9(told: History) -> None:
    assert told.lost() == []


def test_p2_a_request_is_all_there_or_absent(told: History) -> None:
    assert told.partial() == []


def test_p2_a_request_in_doubt_is_all_there_or_absent(told: History) -> None:
    found = [row.key for row in told.rows if row.key in told.in_doubt]

    assert all(found.count(key) in (0, told.size(key)) for key in told.in_doubt)


def test_p3_retries_with_the_same_key_append_once(told: History) -> None:
    assert told.repeated() == []


def test_p4_positions_are_dense_in_the_journal_and_in_each_run(told: History) -> None:
    assert told.holes() == []


def test_p5_nothing_arrives_below_a_position_the_tail_has_seen(told: History) -> None:
    assert told.late() == []


def test_p5_the_tail_sees_every_position_once(told: History) -> None:
    assert told.missed() == [] and told.seen_twice() == []


def start(crew: Crew, name: str) -> Child:
    return crew.start("writer", crew.url, crew.log(name), "--pause-ms", 20)


def kill_one(crew: Crew, writers: dict[str, Child]) -> None:
    """Kills a writer at a random moment of its work, or now and then of its start, and starts it again."""
    chance = Random()
    name = chance.choice(WRITERS)
    if chance.random() < 0.8:
        crew.wait_for_line(name)
    time.sleep(chance.uniform(0, 0.1))
    assert writers[name].is_running, writers[name].complaints
    writers[name].kill()
    writers[name] = start(crew, name)

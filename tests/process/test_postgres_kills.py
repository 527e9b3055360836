"""kill -9 among writers and of Postgres itself, in rounds: one scenario, judged law by law."""

import time
from collections.abc import Iterator
from random import Random

import pytest

from tests.conftest import Scale
from tests.process import history
from tests.process.crew import Child, Crew
from tests.process.history import History
from tests.servers.postgres import PostgresServer

WRITERS = [f"writer{number}" for number in range(4)]
ROUNDS = 3


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory, postgres_server: PostgresServer, scale: Scale) -> Iterator[History]:
    """The history of a journal whose writers and whose server die in turns, and which all come back."""
    with postgres_server.database() as url, Crew(tmp_path_factory.mktemp("server"), url=url) as crew:
        crew.start("tail", crew.url, crew.log("seen"))
        writers = {name: start(crew, name) for name in WRITERS}
        for _ in range(scale(ROUNDS)):
            kill_a_writer(crew, writers)
            kill_the_server(crew, postgres_server)
        for writer in writers.values():
            writer.kill()
        crew.wait_for_tail()
        told = history.collect(crew.folder, WRITERS, place=url)
        print(f"{len(told.rows):,} entries, {len(told.acknowledged):,} answers, {len(told.in_doubt)} requests in doubt")
        yield told


def test_the_scenario_had_what_it_is_about(told: History) -> None:
    retried = [(writer, op) for writer, ops in told.ops.items() for op in ops if op.what == "invoke"]

    assert len(told.acknowledged) > len(WRITERS) and len(retried) > len(told.acknowledged)


def test_p1_nothing_acknowledged_is_lost_to_kill_9_of_the_server(told: History) -> None:
    assert told.lost() == []


def test_p2_a_request_is_all_there_or_absent(told: History) -> None:
    found = [row.key for row in told.rows if row.key in told.in_doubt]

    assert told.partial() == []
    assert all(found.count(key) in (0, told.size(key)) for key in told.in_doubt)


def test_p3_retries_with_the_same_key_append_once(told: History) -> None:
    assert told.repeated() == []


def test_p4_positions_are_dense_in_the_journal_and_in_each_run(told: History) -> None:
    assert told.holes() == []


def test_p5_the_tail_sees_every_position_once_and_in_order(told: History) -> None:
    assert told.late() == [] and told.missed() == [] and told.seen_twice() == []


def start(crew: Crew, name: str) -> Child:
    return crew.start("writer", crew.url, crew.log(name), "--pause-ms", 5)


def kill_a_writer(crew: Crew, writers: dict[str, Child]) -> None:
    chance = Random()
    name = chance.choice(WRITERS)
    crew.wait_for_line(name)
    time.sleep(chance.uniform(0, 0.05))
    writers[name].kill()
    writers[name] = start(crew, name)


def kill_the_server(crew: Crew, server: PostgresServer) -> None:
    """At a random moment of everybody's work; then all of them go on."""
    chance = Random()
    crew.wait_for_line(chance.choice(WRITERS))
    time.sleep(chance.uniform(0, 0.2))
    server.kill_hard()
    server.restart()
    for name in WRITERS:
        crew.wait_for_line(name)

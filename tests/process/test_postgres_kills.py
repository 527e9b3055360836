"""kill -9 among writers and of Postgres itself, in rounds: one scenario, one test per invariant."""

import time
from collections.abc import Iterator
from random import Random

import pytest

from tests.conftest import Scale
from tests.process import history
from tests.process.history import History
from tests.process.processes import Child, Processes
from tests.servers.postgres import PostgresServer

WRITERS = [f"writer{number}" for number in range(4)]
ROUNDS = 3


@pytest.fixture(scope="module")
def recorded(
    tmp_path_factory: pytest.TempPathFactory, postgres_server: PostgresServer, scale: Scale
) -> Iterator[History]:
    """The history of a journal whose writers and whose server die in turns, and which all come back."""
    with postgres_server.database() as url, Processes(tmp_path_factory.mktemp("server"), url=url) as processes:
        processes.start("tail", processes.url, processes.log("seen"))
        writers = {name: start(processes, name) for name in WRITERS}
        for _ in range(scale(ROUNDS)):
            kill_a_writer(processes, writers)
            kill_the_server(processes, postgres_server)
        for writer in writers.values():
            writer.kill()
        processes.wait_for_tail()
        recorded = history.collect(processes.folder, WRITERS, place=url)
        yield recorded


def test_the_scenario_had_retries_and_answers(recorded: History) -> None:
    retried = [(writer, op) for writer, ops in recorded.ops.items() for op in ops if op.what == "invoke"]

    assert len(recorded.acknowledged) > len(WRITERS) and len(retried) > len(recorded.acknowledged)


def test_p1_nothing_acknowledged_is_lost_to_kill_9_of_the_server(recorded: History) -> None:
    assert recorded.anomalies("P1") == []


def test_p2_a_request_is_all_there_or_absent(recorded: History) -> None:
    assert recorded.anomalies("P2") == []


def test_p3_retries_with_the_same_key_append_once(recorded: History) -> None:
    assert recorded.anomalies("P3") == []


def test_p4_positions_are_dense_in_the_journal_and_in_each_run(recorded: History) -> None:
    assert recorded.anomalies("P4", "P6") == []


def test_p5_the_tail_sees_every_position_once_and_in_order(recorded: History) -> None:
    assert recorded.anomalies("P5", "P6") == []


def start(processes: Processes, name: str) -> Child:
    return processes.start("writer", processes.url, processes.log(name), "--pause-ms", 5)


def kill_a_writer(processes: Processes, writers: dict[str, Child]) -> None:
    chance = Random()
    name = chance.choice(WRITERS)
    processes.wait_for_line(name)
    time.sleep(chance.uniform(0, 0.05))
    writers[name].kill()
    writers[name] = start(processes, name)


def kill_the_server(processes: Processes, server: PostgresServer) -> None:
    """Kills at a random moment, then lets all processes continue."""
    chance = Random()
    processes.wait_for_line(chance.choice(WRITERS))
    time.sleep(chance.uniform(0, 0.2))
    server.kill_hard()
    server.restart()
    for name in WRITERS:
        processes.wait_for_line(name)

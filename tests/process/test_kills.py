"""Eight writers and a tail on one file, with kill -9 among the writers: one scenario, one test per invariant."""

import time
from pathlib import Path
from random import Random

import pytest

from tests.conftest import Scale
from tests.process import history, recorder
from tests.process.history import History
from tests.process.processes import Child, Processes
from tests.server.server import clean_environment
from tests.servers import forked

WRITERS = [f"writer{number}" for number in range(8)]
KILLS = 16


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory, scale: Scale) -> History:
    """The history of a scenario in which writers die at random, come back, and die for good at the end."""
    with Processes(tmp_path_factory.mktemp("kills")) as processes:
        processes.start("tail", processes.url, processes.log("seen"))
        writers = {name: start(processes, name) for name in WRITERS}
        for _ in range(scale(KILLS)):
            kill_one(processes, writers)
        for writer in writers.values():
            writer.kill()
        processes.wait_for_tail()
        return history.collect(processes.folder, WRITERS)


def test_the_scenario_had_retries_and_answers(recorded: History) -> None:
    retried = [(writer, op) for writer, ops in recorded.ops.items() for op in ops if op.what == "invoke"]

    assert len(recorded.acknowledged) > len(WRITERS) and len(retried) > len(recorded.acknowledged)


def test_p1_nothing_acknowledged_is_lost_to_kill_9(recorded: History) -> None:
    assert recorded.anomalies("P1") == []


def test_p2_a_request_is_all_there_or_absent(recorded: History) -> None:
    assert recorded.anomalies("P2") == []


def test_p3_retries_with_the_same_key_append_once(recorded: History) -> None:
    assert recorded.anomalies("P3") == []


def test_p4_positions_are_dense_in_the_journal_and_in_each_run(recorded: History) -> None:
    assert recorded.anomalies("P4", "P6") == []


def test_p5_nothing_arrives_below_a_position_the_tail_has_seen(recorded: History) -> None:
    assert recorded.anomalies("P5") == []


def test_p5_the_tail_sees_every_position_once(recorded: History) -> None:
    assert recorded.anomalies("P5", "P6") == []


def test_the_command_finds_nothing_wrong_with_the_recorded_history(recorded: History, tmp_path: Path) -> None:
    file = recorder.save(recorded.lines(), tmp_path / "history.jsonl")

    done = forked.run("tape.cli.main", ["check-history", str(file)], folder=tmp_path, environment=clean_environment())

    assert (done.returncode, done.stderr) == (0, "")


def start(processes: Processes, name: str) -> Child:
    return processes.start("writer", processes.url, processes.log(name), "--pause-ms", 20)


def kill_one(processes: Processes, writers: dict[str, Child]) -> None:
    """Kills a writer at a random moment of its work, or now and then of its start, and starts it again."""
    chance = Random()
    name = chance.choice(WRITERS)
    if chance.random() < 0.8:
        processes.wait_for_line(name)
    time.sleep(chance.uniform(0, 0.1))
    assert writers[name].is_running, writers[name].stderr_text
    writers[name].kill()
    writers[name] = start(processes, name)

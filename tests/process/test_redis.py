"""Processes on one Redis: publishers of one run, and SIGKILL of writers and of the server; a test per invariant."""

import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
import redis

from tests.conftest import Scale
from tests.process import log
from tests.process.history import History, Row
from tests.process.log import Op, Seen
from tests.process.processes import Child, Processes, last_seen
from tests.servers.valkey import ValkeyServer

PUBLISHERS = 8
WRITERS = [f"writer{number}" for number in range(4)]
ROUNDS = 3
EVENT_ID = 4  # its place in a packed event


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory, scale: Scale) -> Iterator[History]:
    """The history of a journal whose writers and whose server die in turns, and which all come back."""
    with (
        ValkeyServer() as server,
        Processes(tmp_path_factory.mktemp("redis"), url=f"{server.url}?keep=1000000") as processes,
    ):
        processes.start("tail", processes.url, processes.log("seen"))
        writers = {name: start(processes, name) for name in WRITERS}
        for _ in range(scale(ROUNDS)):
            kill_a_writer(processes, writers)
            kill_the_server(processes, server)
        for writer in writers.values():
            writer.kill()
        found = rows(server.url)
        processes.wait(lambda: last_seen(processes.log("seen")) >= len(found), f"the tail is at {len(found)}")
        recorded = collect(processes.folder, found)
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


def test_concurrent_publishers_of_one_run_all_succeed(redis_url: str, processes: Processes, scale: Scale) -> None:
    count = scale(250)

    publishers = [processes.start("publisher", f"{redis_url}?keep=1000000", "shared", count) for _ in range(PUBLISHERS)]
    for publisher in publishers:
        publisher.finish()

    found = rows(redis_url)
    assert [row.global_seq for row in found] == [row.seq for row in found] == list(range(1, PUBLISHERS * count + 1))


def start(processes: Processes, name: str) -> Child:
    return processes.start("writer", processes.url, processes.log(name), "--pause-ms", 5)


def kill_a_writer(processes: Processes, writers: dict[str, Child]) -> None:
    chance = Random()
    name = chance.choice(WRITERS)
    processes.wait_for_line(name)
    time.sleep(chance.uniform(0, 0.05))
    writers[name].kill()
    writers[name] = start(processes, name)


def kill_the_server(processes: Processes, server: ValkeyServer) -> None:
    """Kills at a random moment, then lets all processes continue."""
    chance = Random()
    processes.wait_for_line(chance.choice(WRITERS))
    time.sleep(chance.uniform(0, 0.2))
    server.kill_hard()
    server.restart()
    for name in WRITERS:
        processes.wait_for_line(name)


def collect(folder: Path, found: list[Row]) -> History:
    ops = {writer: log.read(folder / f"{writer}.jsonl", Op) for writer in WRITERS}
    return History(ops, found, log.read(folder / "seen.jsonl", Seen))


def rows(url: str) -> list[Row]:
    """What every run holds, in the order of positions, read without any of our own code."""
    found = []
    with redis.Redis.from_url(url, decode_responses=True) as client:
        for key in client.scan_iter("{tape}:entries:*"):
            for place, fields in client.xrange(key):
                seq, position = map(int, place.split("-"))
                event_id = fields["event"].split("\x1f")[EVENT_ID]
                found.append(Row(position, key.rpartition(":")[2], seq, event_id))
    return sorted(found)

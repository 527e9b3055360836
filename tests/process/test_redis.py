"""Processes on one Redis: publishers of one run, and kill -9 of writers and of the server in rounds, law by law."""

import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
import redis

from tests.conftest import Scale
from tests.process import log
from tests.process.crew import Child, Crew, last_seen
from tests.process.history import History, Row
from tests.process.log import Op, Seen
from tests.servers.valkey import ValkeyServer

PUBLISHERS = 8
WRITERS = [f"writer{number}" for number in range(4)]
ROUNDS = 3
EVENT_ID = 4  # its place in a packed event


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory, scale: Scale) -> Iterator[History]:
    """The history of a journal whose writers and whose server die in turns, and which all come back."""
    with ValkeyServer() as server, Crew(tmp_path_factory.mktemp("redis"), url=f"{server.url}?keep=1000000") as crew:
        crew.start("tail", crew.url, crew.log("seen"))
        writers = {name: start(crew, name) for name in WRITERS}
        for _ in range(scale(ROUNDS)):
            kill_a_writer(crew, writers)
            kill_the_server(crew, server)
        for writer in writers.values():
            writer.kill()
        found = rows(server.url)
        crew.wait(lambda: last_seen(crew.log("seen")) >= len(found), f"the tail is at {len(found)}")
        told = collect(crew.folder, found)
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


def test_publishers_of_one_run_are_all_heard_and_none_is_refused(redis_url: str, crew: Crew, scale: Scale) -> None:
    count = scale(250)

    publishers = [crew.start("publisher", f"{redis_url}?keep=1000000", "shared", count) for _ in range(PUBLISHERS)]
    for publisher in publishers:
        publisher.finish()

    found = rows(redis_url)
    assert [row.global_seq for row in found] == [row.seq for row in found] == list(range(1, PUBLISHERS * count + 1))


def start(crew: Crew, name: str) -> Child:
    return crew.start("writer", crew.url, crew.log(name), "--pause-ms", 5)


def kill_a_writer(crew: Crew, writers: dict[str, Child]) -> None:
    chance = Random()
    name = chance.choice(WRITERS)
    crew.wait_for_line(name)
    time.sleep(chance.uniform(0, 0.05))
    writers[name].kill()
    writers[name] = start(crew, name)


def kill_the_server(crew: Crew, server: ValkeyServer) -> None:
    """At a random moment of everybody's work; then all of them go on."""
    chance = Random()
    crew.wait_for_line(chance.choice(WRITERS))
    time.sleep(chance.uniform(0, 0.2))
    server.kill_hard()
    server.restart()
    for name in WRITERS:
        crew.wait_for_line(name)


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

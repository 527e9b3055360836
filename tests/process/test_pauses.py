"""Writers that are paused with SIGSTOP, and the effect on other writers."""

import time
from collections.abc import Sequence
from itertools import pairwise
from random import Random

from tests.conftest import Scale
from tests.process import history, log
from tests.process.log import Op
from tests.process.processes import Child, Processes

WRITERS = [f"writer{number}" for number in range(4)]
PAUSES = 4
PAUSE_S = 0.25


def test_a_paused_writer_delays_the_others_only_while_it_is_paused(processes: Processes, scale: Scale) -> None:
    writers = {name: processes.start("writer", processes.url, processes.log(name)) for name in WRITERS}

    for _ in range(scale(PAUSES)):
        pause_one(processes, writers)

    for writer in writers.values():
        writer.kill()
    recorded = history.collect(processes.folder, WRITERS)
    assert [op for ops in recorded.ops.values() for op in ops if op.what in ("fail", "unknown")] == []
    assert recorded.anomalies("P1", "P2", "P3", "P4", "P5", "P6") == []


def test_a_writer_paused_with_the_lock_makes_others_unavailable_and_nothing_is_written(processes: Processes) -> None:
    processes.start("writer", processes.url, processes.log("writer"), "--impatient", "--pause-ms", 5)
    processes.wait_for_line("writer")
    holder = hold(processes)
    head = history.head(processes.journal)

    processes.wait(lambda: len(failures(processes)) >= 2, "the writer gets an error")
    stood_at = history.head(processes.journal)
    holder.resume()
    processes.wait(lambda: answers(processes)[-1] == "ok", "the writer gets an answer")

    assert stood_at == head
    assert set(failures(processes)) == {"another process holds the database file's lock"}


def test_a_reader_opens_the_journal_while_a_paused_writer_holds_the_lock(processes: Processes) -> None:
    processes.start("writer", processes.url, processes.log("writer"), "--requests", 5).finish()
    hold(processes)

    processes.start("tail", processes.url, processes.log("seen"))

    processes.wait_for_tail()


def hold(processes: Processes) -> Child:
    """A process that has the lock and stands still."""
    holder = processes.start("lock_holder", processes.url)
    processes.wait(lambda: holder.is_paused, "the holder has the lock")
    return holder


def pause_one(processes: Processes, writers: dict[str, Child]) -> None:
    """Pauses a writer at a random moment of its work."""
    chance = Random()
    name = chance.choice(WRITERS)
    processes.wait_for_line(name)
    time.sleep(chance.uniform(0, 0.02))
    writers[name].pause()
    time.sleep(PAUSE_S)
    writers[name].resume()
    for other in WRITERS:
        processes.wait_for_line(other)


def longest_s(ops: Sequence[Op]) -> float:
    """The longest that a writer waited for an answer."""
    return max(b.at_ns - a.at_ns for a, b in pairwise(ops) if a.what == "invoke") / 1e9


def answers(processes: Processes) -> list[str]:
    return [op.what for op in log.read(processes.log("writer"), Op) if op.what != "invoke"]


def failures(processes: Processes) -> list[str]:
    return [op.reason for op in log.read(processes.log("writer"), Op) if op.what == "fail"]

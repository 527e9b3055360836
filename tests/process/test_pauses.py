"""Writers that stand still for a while: what the others notice of it."""

import time
from collections.abc import Sequence
from itertools import pairwise
from random import Random

from tests.conftest import Scale
from tests.process import history, log
from tests.process.crew import Child, Crew
from tests.process.log import Op

WRITERS = [f"writer{number}" for number in range(4)]
PAUSES = 4
PAUSE_S = 0.25


def test_a_paused_writer_delays_the_others_only_while_it_stands_still(crew: Crew, scale: Scale) -> None:
    writers = {name: crew.start("writer", crew.url, crew.log(name)) for name in WRITERS}

    for _ in range(scale(PAUSES)):
        pause_one(crew, writers)

    for writer in writers.values():
        writer.kill()
    told = history.collect(crew.folder, WRITERS)
    assert [op for ops in told.ops.values() for op in ops if op.what in ("fail", "unknown")] == []
    assert told.lost() + told.partial() + told.repeated() + told.holes() == []


def test_a_writer_paused_with_the_lock_makes_others_unavailable_and_nothing_is_written(crew: Crew) -> None:
    crew.start("writer", crew.url, crew.log("writer"), "--impatient", "--pause-ms", 5)
    crew.wait_for_line("writer")
    holder = hold(crew)
    head = history.head(crew.journal)

    crew.wait(lambda: len(failures(crew)) >= 2, "the writer is told no")
    stood_at = history.head(crew.journal)
    holder.resume()
    crew.wait(lambda: answers(crew)[-1] == "ok", "the writer is told yes")

    assert stood_at == head
    assert set(failures(crew)) == {"another process holds the database file's lock"}


def test_a_reader_opens_the_journal_while_a_paused_writer_holds_the_lock(crew: Crew) -> None:
    crew.start("writer", crew.url, crew.log("writer"), "--requests", 5).finish()
    hold(crew)

    crew.start("tail", crew.url, crew.log("seen"))

    crew.wait_for_tail()


def hold(crew: Crew) -> Child:
    """A process that has the lock and stands still."""
    holder = crew.start("holder", crew.url)
    crew.wait(lambda: holder.is_paused, "the holder has the lock")
    return holder


def pause_one(crew: Crew, writers: dict[str, Child]) -> None:
    """Pauses a writer at a random moment of its work."""
    chance = Random()
    name = chance.choice(WRITERS)
    crew.wait_for_line(name)
    time.sleep(chance.uniform(0, 0.02))
    writers[name].pause()
    time.sleep(PAUSE_S)
    writers[name].resume()
    for other in WRITERS:
        crew.wait_for_line(other)


def longest_s(ops: Sequence[Op]) -> float:
    """The longest that a writer waited for an answer."""
    return max(b.at_ns - a.at_ns for a, b in pairwise(ops) if a.what == "invoke") / 1e9


def answers(crew: Crew) -> list[str]:
    return [op.what for op in log.read(crew.log("writer"), Op) if op.what != "invoke"]


def failures(crew: Crew) -> list[str]:
    return [op.reason for op in log.read(crew.log("writer"), Op) if op.what == "fail"]

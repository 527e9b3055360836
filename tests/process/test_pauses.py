"""Writers that stand still for a while: what the others notice of it."""

import time
from random import Random

from tests.conftest import Scale
from tests.process import history, log
from tests.process.crew import Child, Crew
from tests.process.log import Op

WRITERS = [f"writer{number}" for number in range(4)]
PAUSES = 12
PAUSE_S = 0.25


def test_a_paused_writer_delays_the_others_only_while_it_stands_still(crew: Crew, scale: Scale) -> None:
    writers = {name: crew.start("writer", crew.url, crew.log(name)) for name in WRITERS}

    for _ in range(scale(PAUSES)):
        pause_one(crew, writers)

    end(crew, writers)
    told = history.collect(crew.folder, WRITERS)
    assert [op for ops in told.ops.values() for op in ops if op.what in ("fail", "unknown")] == []
    assert max(longest_s(ops) for ops in told.ops.values()) <= PAUSE_S + 2
    assert told.lost() + told.partial() + told.repeated() + told.holes() == []


def test_a_writer_paused_with_the_lock_makes_others_unavailable_and_writes_nothing(crew: Crew) -> None:
    crew.start("writer", crew.url, crew.log("before"), "--requests", 1).finish()
    head = history.head(crew.journal)
    holder = crew.start("holder", crew.url)
    crew.wait(lambda: holder.is_paused, "the holder has the lock")

    writer = crew.start("writer", crew.url, crew.log("after"), "--requests", 1, "--impatient")
    crew.wait(lambda: answer(crew) == "fail", "the writer is told that nothing was written")

    assert history.head(crew.journal) == head
    holder.resume()
    writer.finish()
    assert history.collect(crew.folder, ["before", "after"]).lost() == []


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


def end(crew: Crew, writers: dict[str, Child]) -> None:
    for writer in writers.values():
        writer.kill()


def longest_s(ops: list[Op]) -> float:
    """The longest that a writer waited for an answer."""
    return max(b.at_ns - a.at_ns for a, b in zip(ops, ops[1:], strict=False) if a.what == "invoke") / 1e9


def answer(crew: Crew) -> str | None:
    last = log.last(crew.log("after"), Op)
    return last and last.what

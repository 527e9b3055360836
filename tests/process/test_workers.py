"""Matchers and workers as processes, killed, stopped and resumed: every match is handled, and nobody settles late."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate
from pathlib import Path
from random import Random

import anyio
import pytest

from tape.compose import open_store
from tape.core.event import Event
from tape.core.ids import GlobalSeq
from tape.core.reaction import Reaction
from tape.core.sequence import Request
from tape.core.subject import Pattern
from tape.core.task import Task, TaskStatus
from tests.conftest import Scale
from tests.process import log
from tests.process.crew import Child, Crew
from tests.process.worker import POISON, SAID, Attempt

RULES = [f"rule{number}" for number in range(5)]
NAMES = [f"worker{number}" for number in range(3)]
ROUNDS = 6
LONG_SECOND_NS = 1_000_000_000


@pytest.fixture(params=["sqlite", "postgres"])
def crew(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Crew]:
    if request.param == "postgres":
        with Crew(tmp_path, url=request.getfixturevalue("postgres_url")) as crew:
            yield crew
    else:
        with Crew(tmp_path) as crew:
            yield crew


def test_p10_every_match_is_handled_however_often_matchers_and_workers_are_killed(crew: Crew, scale: Scale) -> None:
    register(crew, num_shards=4)
    workers = {name: start(crew, name, seed) for seed, name in enumerate(NAMES)}
    expected: list[int] = []
    for turn in range(scale(ROUNDS)):
        expected += publish(crew, 10)
        victim = Random().choice(NAMES)
        workers[victim].kill()
        workers[victim] = start(crew, victim, turn)
        register(crew, num_shards=[4, 8, 3][turn % 3])

    crew.wait(partial(is_all_done, crew, len(RULES) * len(expected)), "everything is handled")

    found = tasks(crew)
    places = {rule: sorted(task.source_global_seq for task in found if task.reaction_id == rule) for rule in RULES}
    assert places == dict.fromkeys(RULES, expected)
    assert [what for what, count in ends(crew).items() if count > 1] == []


def test_p10_what_a_worker_says_itself_is_handled_however_often_it_is_killed(crew: Crew, scale: Scale) -> None:
    register(crew, ["rule0"], num_shards=4)
    speakers = {name: start(crew, name, module="speaker") for name in NAMES[:2]}
    for turn in range(scale(ROUNDS)):
        for name in speakers:
            crew.wait_for_line(name)
        victim = Random().choice(NAMES[:2])
        speakers[victim].kill()
        speakers[victim] = start(crew, victim, turn, module="speaker")
    for name, speaker in speakers.items():
        speaker.kill()
        start(crew, name)
    expected = matching(crew)
    crew.wait(partial(is_all_done, crew, len(expected)), "everything is handled")

    assert sorted(task.source_global_seq for task in tasks(crew)) == expected
    assert {each.global_seq for each in attempts(crew) if each.what == SAID} <= {*expected}
    assert set(begins(crew).values()) == {1} and set(ends(crew).values()) == {1}
    assert {*begins(crew)} <= {(task.task_id, n) for task in tasks(crew) for n in range(1, task.attempts + 1)}


def test_p12_a_worker_that_dies_of_its_task_reaches_the_end_after_exactly_its_attempts(crew: Crew) -> None:
    register(crew, dlq_after_n=3)
    publish(crew, 1, POISON)

    deaths = 0
    while not is_all_ended(crew):
        worker = start(crew, "worker0", deaths)
        crew.wait(partial(has_come_to_an_end, crew, worker), "it dies of it")
        worker.kill()
        deaths += 1

    found = tasks(crew)
    begun = begins(crew)
    assert {(task.status, task.attempts) for task in found} == {(TaskStatus.DLQ, 3)}
    assert set(begun.values()) == {1} and Counter(task for task, _ in begun) <= Counter(
        {task.task_id: 3 for task in found}
    )


@pytest.mark.parametrize("second", ["worker0", "worker1"], ids=["same owner", "another owner"])
def test_p11_a_worker_that_was_stopped_past_its_lease_settles_nothing(crew: Crew, second: str) -> None:
    register(crew, ["rule0"])
    stopped = start(crew, "first", owner="worker0", work_ms=400)
    publish(crew, 1)
    crew.wait(lambda: bool(attempts(crew)), "it has begun")
    stopped.pause()

    start(crew, "second", owner=second)
    crew.wait(partial(is_all_done, crew, 1), "another has done it")
    (before,) = tasks(crew)
    stopped.resume()
    crew.wait(lambda: len([each for each in attempts(crew) if each.what == "end"]) == 2, "it ends, too late")
    publish(crew, 1)
    crew.wait(partial(is_all_done, crew, 2), "both go on")

    after = next(task for task in tasks(crew) if task.task_id == before.task_id)
    assert (before.attempt, before.lease_owner) == (2, second) and after == before


def test_p13_dispatchers_together_start_no_more_than_the_rate_and_run_no_more_than_the_slots(crew: Crew) -> None:
    register(crew, ["rule0"], max_concurrency=8, rate_limit_per_s=50)
    for name in [*NAMES, "worker3"]:
        start(crew, name, work_ms=30)
    publish(crew, 120)

    crew.wait(partial(is_all_done, crew, 120), "everything is handled")

    steps = sorted((each.at_ns, each.what) for each in attempts(crew))
    starts = [at_ns for at_ns, what in steps if what == "begin"]
    running = list(accumulate(1 if what == "begin" else -1 for _, what in steps))
    windows = [sum(1 for other in starts if at <= other < at + LONG_SECOND_NS) for at in starts]
    assert max(running) <= 8
    assert max(windows) <= 55


def test_a_debounced_change_is_handled_although_its_dispatcher_is_killed(crew: Crew) -> None:
    register(crew, ["rule0"], debounce_ms=500)
    worker = start(crew, "worker0")
    last = {}
    for number in range(30):
        (place,) = publish(crew, 1, subject=f"/a/key{number % 3}")
        last[number % 3] = place
        if number == 15:
            worker.kill()
            worker = start(crew, "worker0")

    crew.wait(lambda: {*last.values()} <= {each.global_seq for each in attempts(crew) if each.what == "end"}, "all")
    crew.wait(partial(is_all_done, crew, 3), "none is left")

    found = tasks(crew)
    assert sum(task.coalesced + 1 for task in found) == 30
    assert {*last.values()} <= {task.source_global_seq for task in found}


def start(
    crew: Crew, name: str, seed: int = 0, owner: str | None = None, work_ms: int = 1, module: str = "worker"
) -> Child:
    options = ["--owner", owner] if owner else []
    under = ["env", f"PYTHONHASHSEED={seed}"]
    return crew.start(module, crew.url, crew.log(name), *RULES, "--work-ms", work_ms, *options, under=under)


def register(crew: Crew, rules: Sequence[str] = RULES, **options: int) -> None:
    async def main() -> None:
        async with open_store(crew.url) as store:
            for rule in rules:
                base = Reaction(reaction_id=rule, subject_pattern="/a/**", retry_max=100)
                await store.reactions.register(replace(base, **{"max_concurrency": 100, "dlq_after_n": 100, **options}))  # type: ignore[arg-type]

    anyio.run(main)


def publish(crew: Crew, count: int, payload: str = "plain", subject: str = "/a/b") -> list[int]:
    async def main() -> list[int]:
        async with open_store(crew.url) as store:
            events = (Event(run_id=f"r{number}", payload=payload, subject=subject) for number in range(count))
            (entries,) = await store.journal.append([Request(events=tuple(events), opens=True)])
            assert not isinstance(entries, Exception)
            return [entry.global_seq for entry in entries]

    return anyio.run(main)


def tasks(crew: Crew) -> list[Task]:
    async def main() -> list[Task]:
        async with open_store(crew.url) as store:
            return list(await store.tasks.listed(limit=100_000))

    return anyio.run(main)


def matching(crew: Crew) -> list[int]:
    """The places of everything that was said."""

    async def main() -> list[int]:
        async with open_store(crew.url) as store:
            found: list[int] = []
            cursor, head = GlobalSeq(0), (await store.journal.bounds()).head
            while cursor < head:
                page = await store.journal.read(cursor, pattern=Pattern.parse("/a/**"))
                found += [entry.global_seq for entry in page.entries]
                cursor = page.scanned_to
            return found

    return anyio.run(main)


def is_all_done(crew: Crew, count: int) -> bool:
    found = tasks(crew)
    return len(found) >= count and all(task.status is TaskStatus.DONE for task in found)


def is_all_ended(crew: Crew) -> bool:
    found = tasks(crew)
    return bool(found) and all(task.status in (TaskStatus.DONE, TaskStatus.DLQ) for task in found)


def has_come_to_an_end(crew: Crew, worker: Child) -> bool:
    return not worker.is_running or is_all_ended(crew)


def attempts(crew: Crew) -> list[Attempt]:
    return [each for path in crew.folder.glob("*.jsonl") for each in log.read(path, Attempt)]


def begins(crew: Crew) -> Counter[tuple[str, int]]:
    return Counter((each.task_id, each.attempt) for each in attempts(crew) if each.what == "begin")


def ends(crew: Crew) -> Counter[tuple[str, int]]:
    return Counter((each.task_id, each.attempt) for each in attempts(crew) if each.what == "end")

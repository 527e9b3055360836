"""Matchers and workers as processes, killed, stopped and resumed: every match is handled, none is settled late."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import count
from pathlib import Path
from random import Random

import anyio
import pytest

from tape.checker.lines import (
    AnyLine,
    AppendedEvent,
    AppendedPosition,
    AppendLine,
    HandleLine,
    ReadLine,
    RegisterLine,
    StoppedLine,
    TaskLine,
)
from tape.compose import open_store
from tape.core.event import Event
from tape.core.ids import GlobalSeq
from tape.core.reaction import Reaction
from tape.core.sequence import AppendRequest
from tape.core.subject import Pattern
from tape.core.task import Task, TaskStatus
from tests.conftest import Scale
from tests.process import recorder
from tests.process.processes import Child, Processes
from tests.process.recorder import Recorder
from tests.process.worker import POISON

RULES = [f"rule{number}" for number in range(5)]
NAMES = [f"worker{number}" for number in range(3)]
ROUNDS = 6
NUMBERS = count(1)  # of the operations of this process


@pytest.fixture(params=["sqlite", "postgres"])
def processes(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Processes]:
    if request.param == "postgres":
        with Processes(tmp_path, url=request.getfixturevalue("postgres_url")) as processes:
            yield processes
    else:
        with Processes(tmp_path) as processes:
            yield processes


def test_p10_every_match_is_handled_however_often_matchers_and_workers_are_killed(
    processes: Processes, scale: Scale
) -> None:
    register(processes, num_shards=4)
    workers = {name: start(processes, name, seed) for seed, name in enumerate(NAMES)}
    expected: list[int] = []
    for turn in range(scale(ROUNDS)):
        expected += publish(processes, 10)
        victim = Random().choice(NAMES)
        kill(processes, victim, workers[victim])
        workers[victim] = start(processes, victim, turn)
        register(processes, num_shards=[4, 8, 3][turn % 3])

    processes.wait(partial(is_all_done, processes, len(RULES) * len(expected)), "everything is handled")

    assert sorted(matching(processes)) == expected
    assert anomalies(processes, "P10", "P11", "P12", "P13") == []
    assert [what for what, count in ends(processes).items() if count > 1] == []


def test_p10_what_a_worker_publishes_is_handled_however_often_it_is_killed(processes: Processes, scale: Scale) -> None:
    register(processes, ["rule0"], num_shards=4)
    speakers = {name: start(processes, name, module="publishing_worker") for name in NAMES[:2]}
    for _ in range(scale(ROUNDS)):
        for name in speakers:
            processes.wait_for_line(name)
        victim = Random().choice(NAMES[:2])
        kill(processes, victim, speakers[victim])
        speakers[victim] = start(processes, victim, module="publishing_worker")
    for name, speaker in speakers.items():
        kill(processes, name, speaker)
        start(processes, name)
    expected = matching(processes)
    processes.wait(partial(is_all_done, processes, len(expected)), "everything is handled")

    assert sorted(task.source_global_seq for task in tasks(processes)) == expected
    assert anomalies(processes, "P5", "P10", "P11", "P12", "P13") == []
    assert set(begins(processes).values()) == {1} and set(ends(processes).values()) == {1}
    assert {*begins(processes)} <= {(task.task_id, n) for task in tasks(processes) for n in range(1, task.attempts + 1)}


def test_p12_a_task_that_kills_its_worker_ends_after_exactly_its_attempts(processes: Processes) -> None:
    register(processes, dlq_after_n=3)
    publish(processes, 1, POISON)

    while not is_all_ended(processes):
        worker = start(processes, "worker0")
        processes.wait(partial(has_come_to_an_end, processes, worker), "it dies of it")
        worker.kill()

    found = tasks(processes)
    begun = begins(processes)
    assert {(task.status, task.attempts) for task in found} == {(TaskStatus.DLQ, 3)}
    assert set(begun.values()) == {1} and Counter(task for task, _ in begun) <= Counter(
        {task.task_id: 3 for task in found}
    )


@pytest.mark.parametrize("second", ["worker0", "worker1"], ids=["same owner", "another owner"])
def test_p11_a_worker_that_was_stopped_past_its_lease_settles_nothing(processes: Processes, second: str) -> None:
    register(processes, ["rule0"])
    stopped = start(processes, "first", owner="worker0", work_ms=400)
    publish(processes, 1)
    processes.wait(lambda: bool(attempts(processes)), "it has begun")
    stopped.pause()

    start(processes, "second", owner=second)
    processes.wait(partial(is_all_done, processes, 1), "another has done it")
    (before,) = tasks(processes)
    stopped.resume()
    processes.wait(lambda: len(attempts(processes)) == 4, "it ends or is cancelled, too late")
    publish(processes, 1)
    processes.wait(partial(is_all_done, processes, 2), "both go on")

    after = next(task for task in tasks(processes) if task.task_id == before.task_id)
    assert (before.attempt, before.lease_owner) == (2, second) and after == before
    assert anomalies(processes, "P10", "P11", "P12") == []


def test_p13_dispatchers_together_run_no_more_than_the_slots(processes: Processes) -> None:
    register(processes, ["rule0"], max_concurrency=8)
    for name in [*NAMES, "worker3"]:
        start(processes, name, work_ms=30)
    publish(processes, 120)

    processes.wait(partial(is_all_done, processes, 120), "everything is handled")

    assert anomalies(processes, "P10", "P11", "P12", "P13") == []


def test_a_debounced_change_is_handled_although_its_dispatcher_is_killed(processes: Processes) -> None:
    register(processes, ["rule0"], debounce_ms=500)
    worker = start(processes, "worker0")
    last = {}
    for number in range(30):
        (place,) = publish(processes, 1, subject=f"/a/key{number % 3}")
        last[number % 3] = place
        if number == 15:
            worker.kill()
            worker = start(processes, "worker0")

    processes.wait(
        lambda: {*last.values()} <= {each.global_seq for each in attempts(processes) if each.step == "ok"}, "all"
    )
    processes.wait(partial(is_all_done, processes, 3), "none is left")

    found = tasks(processes)
    assert sum(task.coalesced + 1 for task in found) == 30
    assert {*last.values()} <= {task.source_global_seq for task in found}


def start(
    processes: Processes,
    name: str,
    seed: int | None = None,
    owner: str | None = None,
    work_ms: int = 1,
    module: str = "worker",
) -> Child:
    """Starts a worker; with a seed, strings have other hashes in it than in others."""
    options = ["--owner", owner] if owner else []
    under = [] if seed is None else ["env", f"PYTHONHASHSEED={seed}"]
    return processes.start(
        module, processes.url, processes.log(name), *RULES, "--work-ms", work_ms, *options, under=under
    )


def register(processes: Processes, rules: Sequence[str] = RULES, **options: int) -> None:
    """From then on each match makes a task, unless changes are debounced."""
    pattern = "" if "debounce_ms" in options else "/a/**"

    async def main() -> None:
        async with open_store(processes.url) as store:
            for rule in rules:
                base = Reaction(reaction_id=rule, subject_pattern="/a/**", retry_max=100)
                reaction = replace(base, **{"max_concurrency": 100, "dlq_after_n": 100, **options})  # type: ignore[arg-type]
                fields = {"reaction_id": rule, "pattern": pattern, "max_concurrency": reaction.max_concurrency}
                await store.reactions.register(reaction)
                records(processes).write(RegisterLine, step="ok", number=next(NUMBERS), **fields)

    anyio.run(main)


def publish(processes: Processes, count: int, payload: str = "plain", subject: str = "/a/b") -> list[int]:
    async def main() -> list[int]:
        async with open_store(processes.url) as store:
            events = (Event(run_id=f"r{number}", payload=payload, subject=subject) for number in range(count))
            request = AppendRequest(events=tuple(events), opens=True)
            made = tuple(AppendedEvent(each.run_id, each.event_id, each.subject) for each in request.events)
            number = next(NUMBERS)
            records(processes).write(AppendLine, number=number, step="invoke", events=made)
            (entries,) = await store.journal.append([request])
            assert not isinstance(entries, Exception)
            given = tuple(AppendedPosition(entry.global_seq, entry.seq) for entry in entries)
            records(processes).write(AppendLine, number=number, step="ok", positions=given)
            return [entry.global_seq for entry in entries]

    return anyio.run(main)


def tasks(processes: Processes) -> list[Task]:
    async def main() -> list[Task]:
        async with open_store(processes.url) as store:
            return list(await store.tasks.listed(limit=100_000))

    return anyio.run(main)


def matching(processes: Processes) -> list[int]:
    """The positions of all published events."""

    async def main() -> list[int]:
        async with open_store(processes.url) as store:
            found: list[int] = []
            cursor, head = GlobalSeq(0), (await store.journal.bounds()).head
            while cursor < head:
                page = await store.journal.read(cursor, pattern=Pattern.parse("/a/**"))
                found += [entry.global_seq for entry in page.entries]
                cursor = page.scanned_to
            return found

    return anyio.run(main)


def is_all_done(processes: Processes, count: int) -> bool:
    found = tasks(processes)
    return len(found) >= count and all(task.status is TaskStatus.DONE for task in found)


def is_all_ended(processes: Processes) -> bool:
    found = tasks(processes)
    return bool(found) and all(task.status in (TaskStatus.DONE, TaskStatus.DLQ) for task in found)


def has_come_to_an_end(processes: Processes, worker: Child) -> bool:
    return not worker.is_running or is_all_ended(processes)


def attempts(processes: Processes) -> list[HandleLine]:
    return [line for line in lines(processes) if isinstance(line, HandleLine)]


def begins(processes: Processes) -> Counter[tuple[str, int]]:
    return Counter((each.task_id, each.attempt) for each in attempts(processes) if each.step == "invoke")


def ends(processes: Processes) -> Counter[tuple[str, int]]:
    return Counter((each.task_id, each.attempt) for each in attempts(processes) if each.step == "ok")


def kill(processes: Processes, name: str, worker: Child) -> None:
    worker.kill()
    Recorder(processes.log("test"), name).write(StoppedLine)


def anomalies(processes: Processes, *invariants: str) -> list[str]:
    """What the checker finds in the recorded history, when all tasks have ended."""
    records(processes).write(ReadLine, number=1, step="invoke", of="tasks")
    for task in tasks(processes):
        records(processes).write(
            TaskLine, number=1, task_id=task.task_id, reaction_id=task.reaction_id, attempt=task.attempt,
            global_seq=task.source_global_seq, status=task.status.name.lower(),
        )  # fmt: skip
    records(processes).write(ReadLine, number=1, step="ok", of="tasks", is_final=True)
    return recorder.anomalies(recorder.findings(lines(processes)), *invariants)


def lines(processes: Processes) -> list[AnyLine]:
    return recorder.merged(processes.folder.glob("*.jsonl"))


@cache
def records(processes: Processes) -> Recorder:
    return Recorder(processes.log("test"))

"""The disk as a power cut leaves it, at many moments of a writer's work.

The writer stands still while its files are copied: a copy made under way would mix two moments, which no power cut
does. What the writer has not synced by then may be on disk, missing, or something else, so each is tried.
"""

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

import tape
from tests.conftest import Scale
from tests.process import history, log, wal, workload
from tests.process.history import History
from tests.process.log import Op
from tests.process.processes import Processes

MOMENTS = 24
FILES = ("journal.db", "journal.db-wal", "journal.db-shm", "writer.jsonl")


class Aftermath(NamedTuple):
    """The state after a restart: lost acknowledged events, broken invariants, and SQLite's integrity check."""

    lost: list[str]
    broken: list[str]
    verdict: str


@pytest.fixture(scope="module")
def aftermaths(tmp_path_factory: pytest.TempPathFactory, scale: Scale) -> list[Aftermath]:
    lives = [life(tmp_path_factory.mktemp("power")) for _ in range(scale(1))]
    return [aftermath for life in lives for aftermath in life]


def test_p1_nothing_acknowledged_is_lost_to_a_power_cut(aftermaths: list[Aftermath]) -> None:
    assert [loss for aftermath in aftermaths for loss in aftermath.lost] == []


def test_p2_p3_p4_a_power_cut_leaves_whole_requests_once_without_a_hole(aftermaths: list[Aftermath]) -> None:
    assert [fault for aftermath in aftermaths for fault in aftermath.broken] == []


def test_the_database_is_sound_after_a_power_cut(aftermaths: list[Aftermath]) -> None:
    assert {aftermath.verdict for aftermath in aftermaths} == {"ok"}


async def test_a_journal_goes_on_after_a_power_cut(processes: Processes) -> None:
    writer = processes.start("writer", processes.url, processes.log("writer"))
    processes.wait_for_line("writer")
    writer.pause()
    file = restart(copy(processes)) / "journal.db"
    head = history.head(file)

    async with tape.open_journal(f"sqlite:///{file}") as journal:
        (entry,) = await journal.append(tape.Event(run_id="after", payload={}), open=True)

    assert entry.global_seq == head + 1


def life(folder: Path) -> Iterator[Aftermath]:
    """One writer's journal, cut off at many moments; big events make for many checkpoints."""
    with Processes(folder) as processes:
        writer = processes.start("writer", processes.url, processes.log("writer"), "--padding", 400)
        for _ in range(MOMENTS):
            processes.wait_for_line("writer")
            time.sleep(Random().uniform(0, 0.05))
            writer.pause()
            moment = copy(processes)
            yield from variants(moment)
            shutil.rmtree(moment)
            writer.resume()


def copy(processes: Processes) -> Path:
    """The files as they are."""
    folder = processes.folder / f"moment-{os.urandom(4).hex()}"
    folder.mkdir()
    for name in filter(lambda name: (processes.folder / name).exists(), FILES):
        shutil.copy(processes.folder / name, folder)
    return folder


def variants(moment: Path) -> Iterator[Aftermath]:
    """What was not synced is all there, is missing from some byte on, or is something else."""
    ops = log.read(moment / "writer.jsonl", Op)
    recorded = judged(restart(moment), ops)
    yield recorded.aftermath
    certain = wal.durable(moment / "journal.db", is_answered(recorded.history))
    written = (moment / "journal.db-wal").stat().st_size
    for instead in (b"", os.urandom(8192)):
        yield judged(restart(moment, Random().randint(certain, max(certain, written)), instead), ops).aftermath


class Judged(NamedTuple):
    history: History
    aftermath: Aftermath


def judged(folder: Path, ops: list[Op]) -> Judged:
    file = folder / "journal.db"
    recorded = History({"writer": ops}, history.rows(file))
    broken = recorded.contradictions("P2", "P3", "P4", "P5", "P6")
    aftermath = Aftermath(recorded.contradictions("P1"), broken, history.integrity(file))
    shutil.rmtree(folder)
    return Judged(recorded, aftermath)


def restart(moment: Path, end: int | None = None, instead: bytes = b"") -> Path:
    """The disk as the machine finds it: shared memory is gone, and the log may end early or in garbage."""
    folder = moment / f"restart-{os.urandom(4).hex()}"
    folder.mkdir()
    shutil.copy(moment / "journal.db", folder)
    written = (moment / "journal.db-wal").read_bytes()
    (folder / "journal.db-wal").write_bytes(written[:end] + instead)
    return folder


def is_answered(recorded: History) -> bool:
    """Whether the writer had an answer to the last commit there is."""
    return recorded.rows != [] and recorded.rows[-1].key in {
        workload.key(name, op.number) for name, op in recorded.acknowledged
    }

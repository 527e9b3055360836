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
from tests.process import history, log, saying, wal
from tests.process.crew import Crew
from tests.process.history import History
from tests.process.log import Op

MOMENTS = 24
FILES = ("journal.db", "journal.db-wal", "journal.db-shm", "writer.jsonl")


class Aftermath(NamedTuple):
    """What a machine finds when it starts again: acknowledged events that are gone, broken laws, SQLite's verdict."""

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


async def test_a_journal_goes_on_after_a_power_cut(crew: Crew) -> None:
    writer = crew.start("writer", crew.url, crew.log("writer"))
    crew.wait_for_line("writer")
    writer.pause()
    file = restart(copy(crew)) / "journal.db"
    head = history.head(file)

    async with tape.open_journal(f"sqlite:///{file}") as journal:
        (entry,) = await journal.append(tape.Event(run_id="after", payload={}), open=True)

    assert entry.global_seq == head + 1


def life(folder: Path) -> Iterator[Aftermath]:
    """One writer's journal, cut off at many moments; big events make for many checkpoints."""
    with Crew(folder) as crew:
        writer = crew.start("writer", crew.url, crew.log("writer"), "--padding", 400)
        for _ in range(MOMENTS):
            crew.wait_for_line("writer")
            time.sleep(Random().uniform(0, 0.05))
            writer.pause()
            moment = copy(crew)
            yield from variants(moment)
            shutil.rmtree(moment)
            writer.resume()


def copy(crew: Crew) -> Path:
    """The files as they are."""
    folder = crew.folder / f"moment-{os.urandom(4).hex()}"
    folder.mkdir()
    for name in filter(lambda name: (crew.folder / name).exists(), FILES):
        shutil.copy(crew.folder / name, folder)
    return folder


def variants(moment: Path) -> Iterator[Aftermath]:
    """What was not synced is all there, is missing from some byte on, or is something else."""
    ops = log.read(moment / "writer.jsonl", Op)
    told = judged(restart(moment), ops)
    yield told.aftermath
    certain = wal.durable(moment / "journal.db", is_answered(told.history))
    written = (moment / "journal.db-wal").stat().st_size
    for instead in (b"", os.urandom(8192)):
        yield judged(restart(moment, Random().randint(certain, max(certain, written)), instead), ops).aftermath


class Judged(NamedTuple):
    history: History
    aftermath: Aftermath


def judged(folder: Path, ops: list[Op]) -> Judged:
    file = folder / "journal.db"
    told = History({"writer": ops}, history.rows(file))
    broken = told.partial() + told.repeated() + told.holes()
    aftermath = Aftermath(told.lost(), broken, history.integrity(file))
    shutil.rmtree(folder)
    return Judged(told, aftermath)


def restart(moment: Path, end: int | None = None, instead: bytes = b"") -> Path:
    """The disk as the machine finds it: shared memory is gone, and the log may end early or in garbage."""
    folder = moment / f"restart-{os.urandom(4).hex()}"
    folder.mkdir()
    shutil.copy(moment / "journal.db", folder)
    written = (moment / "journal.db-wal").read_bytes()
    (folder / "journal.db-wal").write_bytes(written[:end] + instead)
    return folder


def is_answered(told: History) -> bool:
    """Whether the writer had been told of the last commit there is."""
    return told.rows != [] and told.rows[-1].key in {saying.key(name, op.number) for name, op in told.acknowledged}

"""P17: drivers are killed -9 before a commit, after a commit and at random, while entries are appended."""

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from random import Random
from typing import NamedTuple

import anyio
import psutil
import pytest

from tape.bus.journal import Journal
from tape.lake.compaction import vacuum
from tape.lake.log import DATA, DeltaLog
from tape.lake.verify import faults, versions
from tests.conftest import Scale
from tests.deadlines import DEADLINE_S
from tests.lake.local_lake import fill, opened, publish
from tests.lake.test_compaction import NOW

KILLS = 2  # with --scale more; the third kind of moment is at random
ENTRIES = 10_000
STEP = 400

Moment = Callable[[DeltaLog, frozenset[Path]], bool]  # of a driver: given the folders that were there before it


class Outcome(NamedTuple):
    """A lake whose drivers were killed, the journal's head, and how many files no version names."""

    log: DeltaLog
    head: int
    orphans: int


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory, scale: Scale) -> Outcome:
    kills = scale(KILLS)
    outcome = anyio.run(play, tmp_path_factory.mktemp("p17"), kills, scale(ENTRIES))
    print(
        f"{kills} kills, {outcome.head:,} entries, {outcome.log.snapshot().version} commits, {outcome.orphans} orphans"
    )
    return outcome


async def play(folder: Path, kills: int, entries: int) -> Outcome:
    """Starts and kills drivers while entries are appended, then syncs the rest."""
    log, url = DeltaLog(folder / "lake" / "journal"), f"sqlite:///{folder}/journal.db"
    orphaned: list[psutil.Process] = []
    async with opened(url) as (store, journal):
        async with appending(journal, entries):
            for number in range(kills):
                orphaned += await kill_a_driver(folder, url, log, number)
        await fill(store, log, url)
        head = await journal.head()
    await anyio.to_thread.run_sync(psutil.wait_procs, orphaned)
    named = {log.table / file.path for file in log.snapshot().files}
    orphans = [path for path in (log.table / DATA).rglob("*.parquet") if path not in named]
    return Outcome(log, head, len(orphans))


def test_every_committed_version_is_exactly_one_to_its_end(outcome: Outcome) -> None:
    assert [seen.through for _, seen in versions(outcome.log)][-1] == outcome.head


def test_count_is_distinct_is_max_and_every_byte_is_as_written(outcome: Outcome) -> None:
    assert list(faults(outcome.log, is_deep=True)) == []


def test_vacuum_deletes_the_files_of_killed_drivers_and_nothing_else(outcome: Outcome) -> None:
    assert outcome.orphans >= 1

    assert vacuum(outcome.log, NOW).files >= outcome.orphans and list(faults(outcome.log)) == []


@asynccontextmanager
async def appending(journal: Journal, entries: int) -> AsyncIterator[None]:
    """Appends entries, and more of them in the background."""

    async def append() -> None:
        while True:
            await publish(journal, 20)
            await anyio.sleep(0.1)

    await publish(journal, entries)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(append)
        yield
        tasks.cancel_scope.cancel()


async def kill_a_driver(folder: Path, url: str, log: DeltaLog, number: int) -> list[psutil.Process]:
    """Starts a driver that follows the journal and kills it at a moment; its children exit by themselves."""
    moment = (is_writing, partial(has_committed, version=log.snapshot().version), is_any_time())[number % 3]
    before = frozenset((log.table / DATA).glob("*"))
    environment = {
        **os.environ,
        "TAPE_DATA": str(folder),
        "TAPE_STORE": url,
        "TAPE_LAKE": str(log.table.parent),
        "TAPE_SPARK_MASTER": "local[2]",
    }
    command = [sys.executable, "-m", "tape.cli.main", "lake", "sync", "--follow", "--step", str(STEP)]
    with (folder / "driver.log").open("ab") as output:
        driver = subprocess.Popen(command, env=environment, stdout=output, stderr=output)
    try:
        with anyio.fail_after(DEADLINE_S):
            while not (is_begun := bool(begun(log, before))) or not moment(log, before):
                assert driver.poll() is None, (folder / "driver.log").read_text()
                await anyio.sleep(0.002 if is_begun else 0.05)  # Spark starts for seconds; a step takes a moment
    finally:
        family = psutil.Process(driver.pid).children(recursive=True)
        driver.kill()
        driver.wait()
    return family


def is_writing(log: DeltaLog, before: frozenset[Path]) -> bool:
    """A step has written a file that it has not committed."""
    there = {path for folder in begun(log, before) for path in folder.glob("*.parquet")}
    return bool(there) and not there <= {log.table / file.path for file in log.snapshot().files}


def has_committed(log: DeltaLog, before: frozenset[Path], version: int) -> bool:
    """A step has just been committed."""
    return log.exists and log.snapshot().version > version


def is_any_time() -> Moment:
    """Some step, some moment."""
    chances = Random()

    def is_now(log: DeltaLog, before: frozenset[Path]) -> bool:
        return any((folder / "_temporary").exists() for folder in begun(log, before)) and chances.random() < 0.02

    return is_now


def begun(log: DeltaLog, before: frozenset[Path]) -> frozenset[Path]:
    """The folders of the steps of this driver, without those of earlier ones."""
    return frozenset((log.table / DATA).glob("*")) - before

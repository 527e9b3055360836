"""P17: the driver is killed -9, before a commit, after one and at random, while appends go on; one scenario."""

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext
from functools import partial
from pathlib import Path
from random import Random
from typing import NamedTuple

import anyio
import psutil
import pytest
from pyspark.sql import SparkSession

from tape.bus.journal import Journal
from tape.lake.compaction import vacuum
from tape.lake.log import DATA, DeltaLog
from tape.lake.pipeline import spark_writer, sync
from tape.lake.verify import faults, versions
from tests.conftest import Scale
from tests.lake.plain import opened, say
from tests.lake.test_compaction import NOW
from tests.patience import PATIENCE_S

KILLS = 3
ENTRIES = 10_000
STEP = 400

Moment = Callable[[DeltaLog, frozenset[Path]], bool]  # of a driver: given the folders that were there before it


class Told(NamedTuple):
    """A lake whose drivers were killed, where its journal ended, and how many files nobody names."""

    log: DeltaLog
    head: int
    orphans: int


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession, scale: Scale) -> Told:
    kills = scale(KILLS)
    told = anyio.run(play, tmp_path_factory.mktemp("p17"), spark, kills, scale(ENTRIES))
    print(f"{kills} kills, {told.head:,} entries, {told.log.snapshot().version} commits, {told.orphans} orphans")
    return told


async def play(folder: Path, spark: SparkSession, kills: int, entries: int) -> Told:
    """Drivers are started and killed while somebody appends; then one is left alone."""
    log, url = DeltaLog(folder / "lake" / "journal"), f"sqlite:///{folder}/journal.db"
    orphaned: list[psutil.Process] = []
    async with opened(url) as (store, journal):
        async with appending(journal, entries):
            for number in range(kills):
                orphaned += await kill_a_driver(folder, url, log, number)
        with spark_writer(lambda: nullcontext(spark), url) as write:
            async for _ in sync(store.journal, log, write):
                pass
        head = await journal.head()
    await anyio.to_thread.run_sync(psutil.wait_procs, orphaned)
    named = {log.table / file.path for file in log.snapshot().files}
    orphans = [path for path in (log.table / DATA).rglob("*.parquet") if path not in named]
    return Told(log, head, len(orphans))


def test_every_committed_version_is_exactly_one_to_its_end(told: Told) -> None:
    assert [seen.through for _, seen in versions(told.log)][-1] == told.head


def test_count_is_distinct_is_max_and_every_byte_is_as_it_was_said(told: Told) -> None:
    assert list(faults(told.log, is_deep=True)) == []


def test_what_the_killed_had_written_is_vacuumed_and_nothing_else(told: Told) -> None:
    assert told.orphans >= 1

    assert vacuum(told.log, NOW).files >= told.orphans and list(faults(told.log)) == []


@asynccontextmanager
async def appending(journal: Journal, entries: int) -> AsyncIterator[None]:
    """So many there are at first, and then more and more."""

    async def append() -> None:
        while True:
            await say(journal, 20)
            await anyio.sleep(0.1)

    await say(journal, entries)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(append)
        yield
        tasks.cancel_scope.cancel()


async def kill_a_driver(folder: Path, url: str, log: DeltaLog, number: int) -> list[psutil.Process]:
    """Starts one that follows the journal and kills it at its moment; what it had started goes by itself, later."""
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
        with anyio.fail_after(PATIENCE_S):
            while not moment(log, before):
                assert driver.poll() is None, (folder / "driver.log").read_text()
                await anyio.sleep(0.002)
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
    """The folders of the steps that this driver has begun: what those before it left says nothing of it."""
    return frozenset((log.table / DATA).glob("*")) - before

"""Copies the journal into the lake in steps; the lake's log alone records where the next step begins.

A step may run twice, run on two machines at once, or be killed at any point: files that are not committed are not part
of the lake, and of two commits on one version Delta accepts the first.
"""

from __future__ import annotations

import shutil
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias
from uuid import uuid4

from anyio import from_thread, to_thread

from tape.core.errors import Unavailable
from tape.core.ids import GlobalSeq
from tape.core.ports import Journal
from tape.core.term import Term
from tape.lake.compaction import TARGET, compact
from tape.lake.errors import write_error
from tape.lake.file_lock import exclusive_lock
from tape.lake.log import DATA, DeltaLog, LakeSnapshot
from tape.lake.parquet_files import GROUP_BYTES, GROUP_ROWS, check_written
from tape.lake.same_journal import check_same_journal
from tape.lake.spark_paths import spark_path
from tape.lake.store_option import option_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STEP: Final = 250_000
MANY_FILES: Final = 64

Write: TypeAlias = Callable[[GlobalSeq, GlobalSeq, Path], None]


class SyncStep(NamedTuple):
    """A committed step: the lake's last position, the journal's head, and how many rows are new."""

    through: GlobalSeq
    head: GlobalSeq
    rows: int
    files: int
    version: int


async def sync(journal: Journal, log: DeltaLog, write: Write, step: int = STEP) -> AsyncGenerator[SyncStep, None]:
    """Takes steps until the lake has reached the journal's head."""
    while True:
        head = (await journal.bounds()).head
        done = await _advance(journal, log, write, step, head)
        if done is None:
            return
        yield done


async def follow(journal: Journal, log: DeltaLog, write: Write, step: int = STEP) -> AsyncGenerator[SyncStep, None]:
    """Syncs, then waits for new entries and syncs again, without end; compacts when there are many small files."""
    while True:
        async for done in sync(journal, log, write, step):
            yield done
            if done.files >= MANY_FILES:
                await _compact_small_files(log)
        await journal.wait((await to_thread.run_sync(log.snapshot)).through)


async def _compact_small_files(log: DeltaLog) -> None:
    async with exclusive_lock(log.table):
        small = [file for file in (await to_thread.run_sync(log.snapshot)).files if file.size * 2 <= TARGET]
        if len(small) >= MANY_FILES:
            await to_thread.run_sync(compact, log)


async def _advance(journal: Journal, log: DeltaLog, write: Write, step: int, head: GlobalSeq) -> SyncStep | None:
    """Takes one step; returns None if the lake is at the head."""
    async with exclusive_lock(log.table):  # it only saves work: of two concurrent steps only one can commit
        snapshot = await to_thread.run_sync(log.snapshot)
        await check_same_journal(journal, log, snapshot)
        known = await journal.terms()
        if snapshot.through == head:
            return None
        through = GlobalSeq(min(head, snapshot.through + step))
        check = partial(from_thread.run, _check_unchanged, journal, known)
        done = await to_thread.run_sync(take_step, log, write, snapshot, through, check, abandon_on_cancel=True)
    return SyncStep(done.through, head, through - snapshot.through, len(done.files), done.version)


async def _check_unchanged(journal: Journal, known: Sequence[Term]) -> None:
    """Refuses entries that may come from two servers: read before and after a promotion."""
    if await journal.terms() != known:
        raise Unavailable("the journal's epoch changed while it was read; nothing was added to the lake: sync again")


def take_step(
    log: DeltaLog, write: Write, snapshot: LakeSnapshot, through: GlobalSeq, check: Callable[[], None] = lambda: None
) -> LakeSnapshot:
    """Writes the entries up to a position and commits them; a failure before the commit leaves the lake unchanged."""
    folder = log.table / DATA / f"{snapshot.through + 1:020}-{through:020}-{uuid4().hex[:12]}"
    try:
        write(snapshot.through, through, folder)
        if not folder.is_dir():
            raise Unavailable(f"Spark's files are not in {folder}: the driver and its executors must share this folder")
        files = check_written(log.table, folder, snapshot.through, through)
        check()
    except Exception as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise write_error(error, "the step") from error
    return log.append(snapshot, files)


@contextmanager
def spark_writer(open_spark: Callable[[], AbstractContextManager[SparkSession]], url: str) -> Iterator[Write]:
    """Gives a function that writes ranges of the journal at a URL as Parquet; it opens the session at the first call.

    The URL's secrets stay out of Spark's plans.
    """
    store = option_for(url)
    with ExitStack() as stack:
        spark = cache(lambda: stack.enter_context(open_spark()))
        yield lambda after, through, folder: _write(spark(), store, after, through, folder)


def _write(spark: SparkSession, store: str, after: GlobalSeq, through: GlobalSeq, folder: Path) -> None:
    source = spark.read.format("tape").options(store=store, fromGlobalSeq=after, toGlobalSeq=through)
    # The byte limit alone does not bound the number of rows that compress well.
    limits = {"parquet.block.size": GROUP_BYTES, "parquet.block.row.count.limit": GROUP_ROWS}
    source.load().write.options(compression="zstd", **limits).parquet(spark_path(folder))

"""From the journal to the lake, a step at a time; the lake's log alone says where to go on.

A step may run twice, on two machines at once, or be killed anywhere: what is not committed is not there, and of two
commits on one version Delta takes the first.
"""

from __future__ import annotations

import shutil
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias
from uuid import uuid4

import pyarrow.parquet as pq
from anyio import from_thread, to_thread

from tape.core.errors import BrokerOverflowError, Unavailable
from tape.core.event import Entry
from tape.core.ids import GlobalSeq
from tape.core.ports import Journal
from tape.core.term import Term
from tape.lake.compaction import TARGET, compact
from tape.lake.errors import check_same, lake_beyond_journal, write_error
from tape.lake.file_lock import exclusive_lock
from tape.lake.log import DATA, DeltaLog, LakeSnapshot
from tape.lake.parquet_files import GROUP_BYTES, GROUP_ROWS, check_written, groups
from tape.lake.row_groups import entries_of
from tape.lake.schema import COLUMNS
from tape.lake.spark_paths import spark_path
from tape.lake.store_option import option_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STEP: Final = 250_000
MANY: Final = 64

Write: TypeAlias = Callable[[GlobalSeq, GlobalSeq, Path], None]


class SyncStep(NamedTuple):
    """A step that is committed: what the lake holds now, and how much of it is new."""

    through: GlobalSeq
    head: GlobalSeq
    rows: int
    files: int
    version: int


async def sync(journal: Journal, log: DeltaLog, write: Write, step: int = STEP) -> AsyncGenerator[SyncStep, None]:
    """Steps until the lake holds what the journal held when it was last asked."""
    while True:
        head = (await journal.bounds()).head
        done = await _advance(journal, log, write, step, head)
        if done is None:
            return
        yield done


async def follow(journal: Journal, log: DeltaLog, write: Write, step: int = STEP) -> AsyncGenerator[SyncStep, None]:
    """The same, and then whatever comes, for as long as it is asked; many small files become few."""
    while True:
        async for done in sync(journal, log, write, step):
            yield done
            if done.files >= MANY:
                await _tidy(log)
        await journal.wait((await to_thread.run_sync(log.snapshot)).through)


async def _tidy(log: DeltaLog) -> None:
    async with exclusive_lock(log.table):
        small = [file for file in (await to_thread.run_sync(log.snapshot)).files if file.size * 2 <= TARGET]
        if len(small) >= MANY:
            await to_thread.run_sync(compact, log)


async def _advance(journal: Journal, log: DeltaLog, write: Write, step: int, head: GlobalSeq) -> SyncStep | None:
    """One step, or None if there is nothing to do."""
    async with exclusive_lock(log.table):  # it only saves work: two that step at once cannot both commit
        seen = await to_thread.run_sync(log.snapshot)
        await check_same_journal(journal, log, seen)
        known = await journal.terms()
        if seen.through == head:
            return None
        through = GlobalSeq(min(head, seen.through + step))
        check = partial(from_thread.run, _check_unchanged, journal, known)
        done = await to_thread.run_sync(take_step, log, write, seen, through, check, abandon_on_cancel=True)
    return SyncStep(done.through, head, through - seen.through, len(done.files), done.version)


async def _check_unchanged(journal: Journal, known: Sequence[Term]) -> None:
    """Refuses what may have been read from two servers: before and after one of them was promoted."""
    if await journal.terms() != known:
        raise Unavailable("the journal's epoch changed while it was read; nothing was added to the lake: sync again")


def take_step(
    log: DeltaLog, write: Write, seen: LakeSnapshot, through: GlobalSeq, check: Callable[[], None] = lambda: None
) -> LakeSnapshot:
    """Writes what follows up to a position and commits it; whatever fails before that leaves the lake as it was."""
    folder = log.table / DATA / f"{seen.through + 1:020}-{through:020}-{uuid4().hex[:12]}"
    try:
        write(seen.through, through, folder)
        if not folder.is_dir():
            raise Unavailable(f"what Spark wrote is not in {folder}: it and its executors must share this folder")
        files = check_written(log.table, folder, seen.through, through)
        check()
    except Exception as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise write_error(error, "the step") from error
    return log.append(seen, files)


async def check_same_journal(journal: Journal, log: DeltaLog, seen: LakeSnapshot) -> None:
    """Refuses a lake that the journal does not continue: another journal's, or one from before a restore."""
    bounds = await journal.bounds()
    if seen.through > bounds.head:
        raise lake_beyond_journal(seen.through, bounds.head)
    if seen.through + 1 < bounds.floor:
        raise BrokerOverflowError(None, seen.through + 1, bounds.floor)
    if bounds.floor <= seen.through:
        page = await journal.read(GlobalSeq(seen.through - 1))
        check_same(await to_thread.run_sync(last_entry, log, seen), page.entries[0])


def last_entry(log: DeltaLog, seen: LakeSnapshot) -> Entry:
    """The last entry of a version."""
    path = log.table / seen.files[-1].path
    with pq.ParquetFile(path) as file:
        rows = file.read_row_group(groups(path, file.metadata)[-1].number)
    return entries_of(rows.slice(len(rows) - 1).select(COLUMNS))[0]


@contextmanager
def spark_writer(open_spark: Callable[[], AbstractContextManager[SparkSession]], url: str) -> Iterator[Write]:
    """Writes ranges of the journal at a URL as Parquet, with a session that is opened when there is one to write.

    The URL's secrets stay out of Spark's plans.
    """
    store = option_for(url)
    with ExitStack() as stack:
        spark = cache(lambda: stack.enter_context(open_spark()))
        yield lambda after, through, folder: _write(spark(), store, after, through, folder)


def _write(spark: SparkSession, store: str, after: GlobalSeq, through: GlobalSeq, folder: Path) -> None:
    source = spark.read.format("tape").options(store=store, fromGlobalSeq=after, toGlobalSeq=through)
    target = source.load().write.option("compression", "zstd").option("parquet.block.size", GROUP_BYTES)
    target = target.option("parquet.block.row.count.limit", GROUP_ROWS)  # bytes alone do not bound what repeats itself
    target.parquet(spark_path(folder))

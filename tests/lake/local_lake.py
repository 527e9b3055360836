"""Fills a lake without Spark: writes the same Parquet files with Arrow."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tape.bus.journal import Journal
from tape.compose import open_store, run_journal
from tape.core.event import Columns, Entry, Event
from tape.core.ids import GlobalSeq
from tape.core.ports import Store
from tape.lake.log import DeltaLog
from tape.lake.pipeline import SyncStep, Write, sync
from tape.lake.reader import LakeReader
from tape.store.ranges import EVERYTHING, arrow_schema, open_ranges


def write_with_arrow(url: str, after: GlobalSeq, through: GlobalSeq, folder: Path, rows: int = 100) -> None:
    """Writes a range as two files with small row groups, so that pages cross their borders."""
    folder.mkdir(parents=True)
    middle = (after + through) // 2
    for low, high in ((after, middle), (middle, through)):
        if low < high:
            with open_ranges(url) as ranges:
                batches = list(ranges.read(low, high, Columns._fields, EVERYTHING))
            table = pa.Table.from_batches(batches, arrow_schema())
            pq.write_table(table, folder / f"part-{low}.parquet", compression="zstd", row_group_size=rows)


def arrow_writer(url: str) -> Write:
    return partial(write_with_arrow, url)


async def fill(store: Store, log: DeltaLog, url: str, step: int = 1_000) -> list[SyncStep]:
    """Syncs the lake to the journal's head."""
    return [done async for done in sync(store.journal, log, arrow_writer(url), step)]


@asynccontextmanager
async def opened(url: str, log: DeltaLog | None = None) -> AsyncIterator[tuple[Store, Journal]]:
    """A store and its journal, over a lake if one is given."""
    async with open_store(url) as store, run_journal(store, cold=LakeReader(log) if log else None) as journal:
        yield store, journal


async def publish(journal: Journal, count: int, runs: int = 3) -> list[Entry]:
    """Appends numbers to a few runs in turn."""
    events = [Event(run_id=f"run{n % runs}", payload={"n": n}, subject=f"/n/{n % 7}/{n}") for n in range(count)]
    published = []
    for begin in range(0, count, 500):
        published += await journal.append(events[begin : begin + 500], open=True)
    return published


async def read_all(journal: Journal, **selection: object) -> list[Entry]:
    return [entry async for entry in journal.stream(follow=False, **selection)]  # type: ignore[arg-type]

"""Compaction leaves fewer files with the same entries, in every version and for every reader."""

from datetime import timedelta
from os import utime

import anyio
import pyarrow.parquet as pq

from tape.core.ids import GlobalSeq
from tape.lake.compaction import adjacent_files, compact, vacuum
from tape.lake.log import DeltaLog, LakeFile
from tape.lake.reader import LakeReader
from tape.lake.verify import faults, versions
from tests.lake.local_lake import fill, opened, publish

NOW = timedelta(seconds=-1)


async def filled(log: DeltaLog, url: str) -> None:
    async with opened(url) as (store, journal):
        await publish(journal, 1_000)
        await fill(store, log, url, 100)


def files(*sizes: int) -> list[LakeFile]:
    return [LakeFile(f"{n}", GlobalSeq(n), GlobalSeq(n), size) for n, size in enumerate(sizes, 1)]


def test_only_small_adjacent_files_are_merged_up_to_a_size() -> None:
    rows = adjacent_files(files(10, 20, 200, 5, 5, 95, 1), target=100)

    assert [[file.size for file in row] for row in rows] == [[10, 20], [5, 5]]


async def test_compaction_keeps_every_entry_and_where_to_go_on(log: DeltaLog, url: str) -> None:
    await filled(log, url)

    done = compact(log)

    assert (done.before, done.after, log.snapshot().through) == (20, 1, 1_000)
    assert list(faults(log, is_deep=True)) == []


async def test_every_version_counts_the_same_before_and_after_compaction(log: DeltaLog, url: str) -> None:
    await filled(log, url)
    before = {number: seen.through for number, seen in versions(log)}

    compact(log)

    rows = {
        number: sum(pq.read_metadata(log.table / f.path).num_rows for f in seen.files) for number, seen in versions(log)
    }
    assert rows == {**before, 11: 1_000}


async def test_readers_see_the_same_while_files_are_merged_and_deleted(log: DeltaLog, url: str) -> None:
    await filled(log, url)
    reader, counts = LakeReader(log), []

    async def read_on() -> None:
        for _ in range(6):
            after, count = GlobalSeq(0), 0
            while entries := (await reader.read(after)).entries:
                after, count = entries[-1].global_seq, count + len(entries)
            counts.append(count)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read_on)
        for target in (20_000, 60_000, 1 << 30):
            await anyio.to_thread.run_sync(compact, log, target)
            await anyio.to_thread.run_sync(vacuum, log, NOW)

    assert counts == [1_000] * 6


async def test_vacuum_deletes_orphans_and_leaves_what_is_young_or_named(log: DeltaLog, url: str) -> None:
    await filled(log, url)
    old, young = (log.table / "data" / name / "part.parquet" for name in ("old", "young"))
    for path in (old, young):
        path.parent.mkdir()
        path.write_bytes(b"orphan")
    for path in (old, old.parent):
        utime(path, (0, 0))

    done = vacuum(log)

    assert (done.files, done.size) == (1, 6) and not old.parent.exists() and young.exists()
    assert list(faults(log)) == []


async def test_what_a_compaction_has_just_replaced_stays_for_its_readers(log: DeltaLog, url: str) -> None:
    await filled(log, url)
    before = log.snapshot()
    for file in before.files:
        utime(log.table / file.path, (0, 0))

    compact(log)
    vacuum(log)

    assert all((log.table / file.path).exists() for file in before.files)

"""Archiving trims only what the lake holds, and no reader misses an entry."""

import subprocess
import sys
from contextlib import aclosing
from random import Random

import anyio
import anyio.lowlevel
import pytest
from anyio import to_thread

from tape.bus.journal import Journal
from tape.core.errors import Conflict, NotFound
from tape.core.event import Entry
from tape.core.ids import GlobalSeq
from tape.core.ports import Bounds
from tape.lake.archive import ComparedPositions, archive
from tape.lake.log import DeltaLog
from tests.conftest import ROOT, Scale
from tests.deadlines import DEADLINE_S
from tests.lake.archiver import STEP
from tests.lake.local_lake import fill, opened, publish, read_all

LATER = 1 << 60


def ignore(compared: ComparedPositions) -> None:
    return


async def test_only_old_entries_in_the_lake_are_trimmed(log: DeltaLog, url: str) -> None:
    async with opened(url, log) as (store, journal):
        published = await publish(journal, 600)
        cutoff = published[399].ts_ms
        old = sum(entry.ts_ms < cutoff for entry in published)
        await fill(store, log, url)
        published += await publish(journal, 100)

        assert await archive(store, log, cutoff, ignore) == Bounds(GlobalSeq(old + 1), GlobalSeq(700))
        assert await archive(store, log, LATER, ignore) == Bounds(GlobalSeq(601), GlobalSeq(700))
        assert await read_all(journal) == published


async def test_without_a_lake_nothing_is_trimmed(log: DeltaLog, url: str) -> None:
    async with opened(url) as (store, journal):
        await publish(journal, 60)

        with pytest.raises(NotFound, match="no lake"):
            await archive(store, log, LATER, ignore)
        assert await journal.floor() == 1


async def test_an_entry_that_differs_in_the_lake_keeps_everything_in_the_journal(log: DeltaLog, url: str) -> None:
    async with opened(url) as (store, journal):
        await publish(journal, 600)
        await fill(store, log, url)
        async with store.transaction() as tx:
            await tx.fetch("UPDATE tape_journal SET ts_ms = ts_ms + 1 WHERE global_seq = 555", {})

        with pytest.raises(Conflict, match="entry 555"):
            await archive(store, log, LATER, ignore)
        assert (await store.journal.bounds()).floor == 1


async def test_the_head_never_restarts_when_everything_is_archived(log: DeltaLog, url: str) -> None:
    async with opened(url, log) as (store, journal):
        published = await publish(journal, 60)
        await fill(store, log, url)
        await archive(store, log, LATER, ignore)
        published += await publish(journal, 3)

        assert published[-1].global_seq == 63 and published[-1].seq == 21 and await read_all(journal) == published


async def test_subscribers_at_the_beginning_in_the_middle_and_live_miss_nothing_while_it_is_archived(
    log: DeltaLog, url: str, scale: Scale
) -> None:
    rounds, seen = scale(4), {0: [], 300: [], 600: []}  # type: tuple[int, dict[int, list[Entry]]]
    last = 600 + 200 * rounds
    async with opened(url, log) as (store, journal):
        await publish(journal, 600)
        await fill(store, log, url)
        with anyio.fail_after(DEADLINE_S):
            async with anyio.create_task_group() as tasks:
                for after, entries in seen.items():
                    tasks.start_soon(read_to, journal, after, last, entries)
                for _ in range(rounds):
                    await publish(journal, 200)
                    await fill(store, log, url)
                    await archive(store, log, LATER, ignore)
        everything = await read_all(journal)

    assert [entry.global_seq for entry in everything] == list(range(1, last + 1))
    assert seen == {after: everything[after:] for after in seen}


async def test_an_archiver_killed_at_any_step_loses_nothing_and_the_next_one_continues(
    log: DeltaLog, url: str, scale: Scale
) -> None:
    async with opened(url, log) as (store, journal):
        published = await publish(journal, 4_000)
        await fill(store, log, url)
        floors = [await killed_archiver(log, url, journal) for _ in range(scale(5))]
        survived = await read_all(journal)
        await archive(store, log, LATER, ignore)

        assert survived == published == await read_all(journal) and await journal.floor() == 4_001
    assert floors == sorted(floors) and any(1 < floor < 4_001 for floor in floors)


async def killed_archiver(log: DeltaLog, url: str, journal: Journal) -> int:
    """Kills an archiver while it compares or trims; returns the journal's floor after that."""
    begin = await journal.floor()
    command = [sys.executable, "-m", "tests.lake.archiver", url, str(log.table)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as archiver:
        assert archiver.stdout is not None
        with anyio.fail_after(DEADLINE_S):
            await to_thread.run_sync(archiver.stdout.read, 1)  # there may be nothing left to archive
            steps = Random().randrange(0, 20)
            while archiver.poll() is None and await journal.floor() < begin + steps * STEP:
                pass
        archiver.kill()
    return await journal.floor()


async def read_to(journal: Journal, after: int, last: int, entries: list[Entry]) -> None:
    async with aclosing(journal.stream(from_global_seq=after)) as stream:
        async for entry in stream:
            entries.append(entry)
            await anyio.lowlevel.checkpoint()
            if entry.global_seq == last:
                return

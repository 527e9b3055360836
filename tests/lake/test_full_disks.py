"""A lake on a full disk: the step fails with the reason, nothing is lost, and it succeeds later."""

from contextlib import suppress
from pathlib import Path

import pytest

from tape.core.errors import Unavailable
from tape.core.ids import GlobalSeq
from tape.lake.compaction import compact
from tape.lake.log import DeltaLog
from tape.lake.pipeline import take_step
from tape.lake.verify import faults
from tests.lake.local_lake import fill, opened, publish, write_with_arrow

BLOCK = bytes(4_096)


def fill_up(path: Path) -> None:
    """Fills the rest of the disk."""
    with path.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(BLOCK)


async def test_a_step_without_room_for_its_commit_is_refused_and_taken_again_when_there_is(
    url: str, small_disk: Path
) -> None:
    log, ballast = DeltaLog(small_disk / "journal"), small_disk / "ballast"

    def write(after: GlobalSeq, through: GlobalSeq, folder: Path) -> None:
        write_with_arrow(url, after, through, folder)
        fill_up(ballast)

    async with opened(url) as (store, journal):
        await publish(journal, 100)
        await fill(store, log, url)
        await publish(journal, 100)

        with pytest.raises(Unavailable, match="no room for the lake's log"):
            take_step(log, write, log.snapshot(), GlobalSeq(200))
        refused = log.snapshot().through
        ballast.unlink()
        await fill(store, log, url)

    assert (refused, log.snapshot().through, list(faults(log, is_deep=True))) == (100, 200, [])


async def test_a_compaction_without_room_is_refused_and_leaves_the_lake_as_it_was(url: str, small_disk: Path) -> None:
    log, ballast = DeltaLog(small_disk / "journal"), small_disk / "ballast"
    async with opened(url) as (store, journal):
        await publish(journal, 300)
        await fill(store, log, url, step=100)
    before = sorted(log.table.rglob("*"))
    fill_up(ballast)

    with pytest.raises(Unavailable, match="No space left"):
        compact(log)

    assert sorted(log.table.rglob("*")) == before and list(faults(log, is_deep=True)) == []
    ballast.unlink()
    assert compact(log).after == 1 and list(faults(log, is_deep=True)) == []

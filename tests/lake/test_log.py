"""The lake's log: what is committed is exactly 1 to w, by one writer at a time, or it is refused."""

import json
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from deltalake import DeltaTable

from tape.core.errors import BrokerOverflowError, Conflict, Corrupt, Unavailable
from tape.core.ids import GlobalSeq
from tape.lake.compaction import compact
from tape.lake.log import DeltaLog, LakeFile
from tape.lake.parquet_files import merge
from tape.lake.pipeline import sync, take_step
from tape.lake.verify import faults, versions
from tests.lake.local_lake import arrow_writer, fill, opened, publish, write_with_arrow


async def filled(log: DeltaLog, url: str, count: int = 600, step: int = 200) -> None:
    async with opened(url) as (store, journal):
        await publish(journal, count)
        await fill(store, log, url, step)


async def test_every_version_is_exactly_one_to_its_end(log: DeltaLog, url: str) -> None:
    await filled(log, url)

    assert [(number, seen.through) for number, seen in versions(log)] == [(0, 0), (1, 200), (2, 400), (3, 600)]


async def test_versions_computed_from_commits_equal_those_of_deltalake(log: DeltaLog, url: str) -> None:
    await filled(log, url)
    compact(log)

    assert [seen for _, seen in versions(log)] == [log.at(number) for number in range(5)]


async def test_of_two_steps_on_one_version_delta_takes_one(log: DeltaLog, url: str) -> None:
    await filled(log, url, 600, 600)
    async with opened(url) as (_, journal):
        await publish(journal, 100)
    seen, also_seen = log.snapshot(), log.snapshot()

    take_step(log, arrow_writer(url), seen, GlobalSeq(700))

    with pytest.raises(Conflict, match="another writer"):
        take_step(log, arrow_writer(url), also_seen, GlobalSeq(650))
    assert log.snapshot().through == 700 and list(faults(log)) == []


async def test_of_two_first_steps_one_makes_the_table(log: DeltaLog, url: str) -> None:
    async with opened(url) as (_, journal):
        await publish(journal, 10)
    seen = log.snapshot()

    take_step(log, arrow_writer(url), seen, GlobalSeq(10))

    with pytest.raises(Conflict):
        take_step(log, arrow_writer(url), seen, GlobalSeq(10))
    assert log.snapshot().through == 10 and list(faults(log)) == []


async def test_two_compactions_of_the_same_files_do_not_double_them(log: DeltaLog, url: str) -> None:
    await filled(log, url)
    seen, also_seen = log.snapshot(), log.snapshot()
    ours, theirs = (merge(log.table, seen.files, log.table / "data" / name) for name in ("a.parquet", "b.parquet"))

    log.replace(seen, seen.files, [ours])

    with pytest.raises(Conflict):
        log.replace(also_seen, also_seen.files, [theirs])
    assert log.snapshot().files == (ours,)


async def test_a_step_overtaken_by_a_compaction_is_refused_and_then_retried(log: DeltaLog, url: str) -> None:
    await filled(log, url)
    async with opened(url) as (store, journal):
        await publish(journal, 100)
        seen = log.snapshot()
        compact(log)

        with pytest.raises(Conflict):
            take_step(log, arrow_writer(url), seen, GlobalSeq(700))
        await fill(store, log, url)

    assert log.snapshot().through == 700 and list(faults(log)) == []


async def test_a_lake_of_entries_that_the_journal_lost_is_refused_with_the_position_and_the_way_out(
    log: DeltaLog, url: str, tmp_path: Path
) -> None:
    await filled(log, url)
    other = f"sqlite:///{tmp_path / 'other.db'}"

    async with opened(other) as (store, journal):
        await publish(journal, 700)
        with pytest.raises(Conflict, match=r"entry 600 of the lake is not the journal's \(checksum .*rebuild-the-lake"):
            await fill(store, log, other)

    assert log.snapshot().through == 600


async def test_a_step_during_which_the_epoch_changed_is_not_committed(log: DeltaLog, url: str) -> None:
    await filled(log, url)

    async with opened(url) as (store, journal):
        await publish(journal, 10)

        def write(after: GlobalSeq, through: GlobalSeq, folder: Path) -> None:
            write_with_arrow(url, after, through, folder)
            anyio.from_thread.run(store.new_epoch)

        with pytest.raises(Unavailable, match="sync again"):
            async for _ in sync(store.journal, log, write):
                pytest.fail("it was committed")
        assert log.snapshot().through == 600
        await fill(store, log, url)

    assert log.snapshot().through == 610 and list(faults(log)) == []


async def test_a_step_whose_files_miss_an_entry_is_not_committed(log: DeltaLog, url: str) -> None:
    await filled(log, url)

    def write_less(after: GlobalSeq, through: GlobalSeq, folder: Path) -> None:
        write_with_arrow(url, after, GlobalSeq(through - 2), folder)

    async with opened(url) as (_, journal):
        await publish(journal, 10)

    with pytest.raises(Corrupt, match="609 to 610 are missing"):
        take_step(log, write_less, log.snapshot(), GlobalSeq(610))

    assert log.snapshot().through == 600 and len(list((log.table / "data").iterdir())) == 3


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def overwrite(path: Path) -> None:
    path.write_bytes(bytes(200))


@pytest.mark.parametrize(
    ("damage", "number"),
    [(truncate, 2), (empty, 2), (overwrite, 2), (Path.unlink, 2), (truncate, 3), (empty, 3), (overwrite, 3)],
)
async def test_a_damaged_log_is_refused_with_a_reason_and_left_alone(
    log: DeltaLog, url: str, damage: Callable[[Path], None], number: int
) -> None:
    await filled(log, url)
    damage(log.folder / f"{number:020}.json")
    before = sorted(path.name for path in log.table.rglob("*"))

    async with opened(url) as (store, _):
        with pytest.raises(Corrupt, match=r"damaged|missing"):
            await fill(store, log, url)

    assert [fault.reason for fault in faults(log)] != []
    assert sorted(path.name for path in log.table.rglob("*")) == before


async def test_a_log_that_begins_at_a_checkpoint_continues(log: DeltaLog, url: str) -> None:
    await filled(log, url)
    compact(log)
    DeltaTable(log.table).create_checkpoint()
    for number in range(4):
        (log.folder / f"{number:020}.json").unlink()

    async with opened(url) as (store, journal):
        await publish(journal, 50)
        await fill(store, log, url)

    assert [(number, seen.through) for number, seen in versions(log)] == [(4, 600), (5, 650)]
    assert list(faults(log)) == []


async def test_a_missing_file_is_named(log: DeltaLog, url: str) -> None:
    await filled(log, url)
    lost: LakeFile = log.snapshot().files[1]
    (log.table / lost.path).unlink()

    assert [(fault.global_seq, "is missing" in fault.reason) for fault in faults(log)] == [(lost.first, True)]


async def test_a_log_that_counts_an_entry_twice_is_refused(log: DeltaLog, url: str) -> None:
    await filled(log, url)
    path = log.folder / f"{3:020}.json"
    actions = [json.loads(line) for line in path.read_text().splitlines()]
    twice = [{"add": {**action["add"], "path": "data/again.parquet"}} for action in actions if "add" in action]
    path.write_text("\n".join(map(json.dumps, [*actions, *twice])))

    with pytest.raises(Corrupt, match="twice"):
        log.snapshot()


async def test_a_lake_beyond_the_journal_is_refused(log: DeltaLog, url: str, tmp_path: Path) -> None:
    await filled(log, url)

    async with opened(f"sqlite:///{tmp_path}/other.db") as (store, journal):
        await publish(journal, 7)
        with pytest.raises(Conflict, match="ends at 600"):
            await fill(store, log, url)


async def test_a_journal_that_has_lost_its_beginning_cannot_fill_a_lake(log: DeltaLog, url: str) -> None:
    async with opened(url) as (store, journal):
        await publish(journal, 100)
        await store.retention.trim(GlobalSeq(40))

        with pytest.raises(BrokerOverflowError, match="1 to 40 are gone"):
            async for _ in sync(store.journal, log, arrow_writer(url)):
                pass

    assert not log.exists

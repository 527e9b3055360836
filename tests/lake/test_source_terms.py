"""Spark's source after a promotion: cursors below the fork resume, cursors beyond it are refused."""

import anyio
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from tape.compose import open_store
from tape.core.errors import Conflict, InvalidCursor
from tape.lake.partitions import PartitionReader
from tape.lake.source import JournalReader, JournalStreamReader
from tape.lake.source_options import SourceOptions
from tape.store.ranges import arrow_schema
from tests.lake.journals import drop_newest, fill, numbered, promote

ALL = ReadAllAvailable()
Offset = dict[str, int]


def stream(url: str) -> JournalStreamReader:
    return JournalStreamReader(SourceOptions(), PartitionReader(url, arrow_schema()))


def latest(url: str, start: Offset | None = None) -> Offset:
    reader = stream(url)
    return reader.latestOffset(start or reader.initialOffset(), ALL)


def positions(url: str, start: Offset, end: Offset) -> list[int]:
    reader = stream(url)
    batches = [batch for part in reader.partitions(start, end) for batch in reader.read(part)]
    return [place for batch in batches for place in batch.column("global_seq").to_pylist()]


def test_a_checkpoint_resumes_in_its_own_journal(durable_url: str) -> None:
    fill(durable_url, numbered(10))
    start = latest(durable_url)
    fill(durable_url, numbered(5, start=10))

    end = latest(durable_url, start)

    assert end == {"global_seq": 15, "epoch": start["epoch"]}
    assert positions(durable_url, start, end) == [*range(11, 16)]


def test_a_checkpoint_below_the_fork_resumes_in_the_next_term(postgres_url: str) -> None:
    fill(postgres_url, numbered(10))
    start = latest(postgres_url)
    promote(postgres_url, kept=10, written=5)

    end = latest(postgres_url, start)

    assert end["global_seq"] == 15 and end["epoch"] > start["epoch"]
    assert positions(postgres_url, start, end) == [*range(11, 16)]


def test_a_checkpoint_beyond_the_fork_is_refused_with_what_to_do(postgres_url: str) -> None:
    fill(postgres_url, numbered(10))
    start = latest(postgres_url)
    promote(postgres_url, kept=7, written=20)

    with pytest.raises(Conflict, match=rf"10 of epoch {start['epoch']}.* begins at 8: .* fromGlobalSeq=7"):
        latest(postgres_url, start)


def test_a_batch_that_was_planned_beyond_the_fork_is_not_planned_again(postgres_url: str) -> None:
    fill(postgres_url, numbered(5))
    start = latest(postgres_url)
    fill(postgres_url, numbered(5, start=5))
    end = latest(postgres_url, start)
    promote(postgres_url, kept=7, written=20)

    with pytest.raises(Conflict, match=r"fromGlobalSeq=7"):
        positions(postgres_url, start, end)


def test_a_batch_that_ends_below_the_fork_is_planned_again(postgres_url: str) -> None:
    fill(postgres_url, numbered(5))
    start = latest(postgres_url)
    fill(postgres_url, numbered(5, start=5))
    end = latest(postgres_url, start)
    promote(postgres_url, kept=10, written=20)

    assert positions(postgres_url, start, end) == [*range(6, 11)]


@pytest.mark.parametrize("kind", [JournalReader, JournalStreamReader])
def test_a_task_refuses_a_range_that_was_planned_beyond_the_fork(
    postgres_url: str, kind: type[JournalReader] | type[JournalStreamReader]
) -> None:
    fill(postgres_url, numbered(10))
    reader = kind(SourceOptions(), PartitionReader(postgres_url, arrow_schema()))
    if isinstance(reader, JournalStreamReader):
        (planned,) = reader.partitions(reader.initialOffset(), latest(postgres_url))
    else:
        (planned,) = reader.partitions()
    promote(postgres_url, kept=7, written=20)

    with pytest.raises(Conflict, match="10 of epoch"):
        list(reader.read(planned))


def test_a_checkpoint_beyond_the_head_of_a_promoted_server_is_refused_before_anybody_writes(postgres_url: str) -> None:
    fill(postgres_url, numbered(10))
    start = latest(postgres_url)
    drop_newest(postgres_url, kept=7)

    with pytest.raises(InvalidCursor, match="the journal ends at 7"):
        latest(postgres_url, start)


def test_a_checkpoint_that_names_no_epoch_is_refused(durable_url: str) -> None:
    fill(durable_url, numbered(10))

    with pytest.raises(Conflict, match="5 of an unknown epoch"):
        latest(durable_url, {"global_seq": 5})


def test_no_checkpoint_resumes_in_an_epoch_that_was_begun_by_hand(durable_url: str) -> None:
    fill(durable_url, numbered(10))
    start = latest(durable_url)
    anyio.run(begin_epoch, durable_url)

    with pytest.raises(Conflict, match=f"10 of epoch {start['epoch']}"):
        latest(durable_url, start)


async def begin_epoch(url: str) -> None:
    async with open_store(url) as store:
        await store.new_epoch()

"""The journal as a Spark sink: each batch is appended once, as a whole or not at all."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import anyio
import pytest
from anyio import to_thread
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from tape.compose import open_store
from tape.core.errors import Conflict
from tape.core.event import Entry, Event
from tape.core.ports import Cells, Store, Transaction
from tape.core.sequence import MAX_BYTES
from tape.lake import sink_batch
from tape.lake.sink_batch import SinkBatch, append_batch
from tests.lake.journals import fill, hostile, numbered, plain, read
from tests.lake.stream_copy import copy_stream
from tests.patience import PATIENCE_S

COPIED = ("run_id", "type", "subject", "payload_json")


def test_a_sink_appends_what_it_is_given(spark: SparkSession, durable_url: str, tmp_path: Path) -> None:
    origin = f"sqlite:///{tmp_path}/origin.db"
    fill(origin, [event for event in hostile(50, seed=3) if event.run_id == "json"])

    copy_stream(spark, origin, durable_url, tmp_path, rows=20)

    assert plain(read(durable_url), *COPIED) == plain(read(origin), *COPIED)


def test_a_batch_that_comes_again_appends_nothing(spark: SparkSession, durable_url: str, tmp_path: Path) -> None:
    origin = f"sqlite:///{tmp_path}/origin.db"
    fill(origin, numbered(50))
    copy_stream(spark, origin, durable_url, tmp_path, rows=20)
    forget_newest(tmp_path / "checkpoint" / "commits")

    copy_stream(spark, origin, durable_url, tmp_path, rows=20)

    assert plain(read(durable_url), *COPIED) == plain(read(origin), *COPIED)


def forget_newest(commits: Path) -> None:
    """Leaves a checkpoint as a kill between the append and the commit does."""
    newest = max(int(path.name) for path in commits.iterdir() if path.name.isdecimal())
    (commits / str(newest)).unlink()
    (commits / f".{newest}.crc").unlink()


def test_a_query_that_starts_over_under_the_same_name_is_refused(spark: SparkSession, url: str, tmp_path: Path) -> None:
    origin = f"sqlite:///{tmp_path}/origin.db"
    fill(origin, numbered(50))
    copy_stream(spark, origin, url, tmp_path, rows=20)

    with pytest.raises(PySparkException, match="has appended batch 2 already, and batch 0 is not that one again"):
        copy_stream(spark, origin, url, tmp_path / "another", rows=20)

    assert len(read(url)) == 50


def test_a_frame_is_written_once_however_often(spark: SparkSession, durable_url: str, tmp_path: Path) -> None:
    frame = spark.createDataFrame([("r", '{"n": 1}'), ("r", '"two"')], "run_id STRING, payload_json STRING")

    for _ in range(2):
        write(frame, durable_url)

    assert [entry.payload for entry in read(durable_url)] == [{"n": 1}, "two"]


def write(frame: DataFrame, store: str, mode: str = "append") -> None:
    frame.write.format("tape").mode(mode).options(store=store, sinkId="once").save()


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ("'r' AS run_id", "the column payload_json is missing"),
        ("'r' AS run_id, '1' AS payload_json, 1 AS crc", "an event has no column 'crc'"),
        ("'r' AS run_id, '{' AS payload_json", "row 1 of the batch is no event"),
        ("'tape.mine' AS run_id, '1' AS payload_json", "row 1 of the batch is no event: run ids beginning 'tape.'"),
        ("'r' AS run_id, '1' AS payload_json, '/tape/x' AS subject", "subject '/tape/x' is reserved"),
    ],
)
def test_rows_that_are_no_events_append_nothing(spark: SparkSession, url: str, columns: str, reason: str) -> None:
    fill(url, [])

    with pytest.raises(PySparkException, match=reason):
        write(spark.sql(f"SELECT {columns}"), url)

    assert read(url) == []


def test_a_journal_is_never_overwritten(spark: SparkSession, url: str) -> None:
    with pytest.raises(PySparkException, match="a journal is only ever appended to"):
        write(spark.sql("SELECT 'r' AS run_id, '1' AS payload_json"), url, mode="overwrite")


def test_a_sink_without_a_name_is_refused(spark: SparkSession, url: str) -> None:
    frame = spark.sql("SELECT 'r' AS run_id, '1' AS payload_json")

    with pytest.raises(PySparkException, match="the option sinkId is missing"):
        frame.write.format("tape").mode("append").option("store", url).save()


async def test_twenty_thousand_rows_are_one_transaction(durable_url: str) -> None:
    batch = SinkBatch(sink_id="s", number=0, events=[Event(run_id="r", payload=n) for n in range(20_000)])

    async with open_store(durable_url) as store:
        first, again = await append_batch(store, batch), await append_batch(store, batch)
        head = (await store.journal.bounds()).head

    assert (first, again, head) == (True, False, 20_000)


async def test_a_batch_is_known_again_in_another_order(durable_url: str) -> None:
    events = [Event(run_id="r", payload=n) for n in range(2_000)]
    turned = [Event(run_id="r", payload=n) for n in reversed(range(2_000))]

    async with open_store(durable_url) as store:
        await append_batch(store, SinkBatch(sink_id="s", number=4, events=events))
        is_new = await append_batch(store, SinkBatch(sink_id="s", number=4, events=turned))

    assert not is_new


@pytest.mark.parametrize(("number", "count"), [(4, 2_001), (3, 2_000), (4, 1_000)])
async def test_another_batch_under_an_old_number_is_a_conflict(durable_url: str, number: int, count: int) -> None:
    events = [Event(run_id="r", payload=n) for n in range(2_001)]

    async with open_store(durable_url) as store:
        await append_batch(store, SinkBatch(sink_id="s", number=4, events=events[:2_000]))
        with pytest.raises(Conflict):
            await append_batch(store, SinkBatch(sink_id="s", number=number, events=events[:count]))
        head = (await store.journal.bounds()).head

    assert head == 2_000


class Killed(Exception):
    """Stands for the end of a process."""


class Dying:
    """A store whose process ends instead of committing the transaction of a number."""

    def __init__(self, store: Store, lives: int) -> None:
        self._store = store
        self._lives = lives

    @property
    def cells(self) -> Cells:
        return self._store.cells

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        if self._lives == 0:
            raise Killed
        self._lives -= 1
        return self._store.transaction()


def payloads(entries: Sequence[Entry]) -> list[object]:
    return [entry.payload for entry in entries]


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of 200 rows."""
    monkeypatch.setattr(sink_batch, "MOST_ROWS", 200)


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("is_turned", [False, True], ids=["same-order", "other-order"])
async def test_a_batch_interrupted_between_parts_continues_after_them(durable_url: str, is_turned: bool) -> None:
    numbers = [n // 2 for n in range(450)]  # each row twice, as rows may be
    events = [Event(run_id="r", payload=n) for n in numbers]
    batch = SinkBatch(sink_id="s", number=3, events=events)
    again = SinkBatch(sink_id="s", number=3, events=events[::-1] if is_turned else events)

    async with open_store(durable_url) as store:
        with pytest.raises(Killed):
            await append_batch(Dying(store, 1), batch)  # type: ignore[arg-type]
        some = (await store.journal.bounds()).head
        outcomes = [await append_batch(store, again), await append_batch(store, batch)]
    found = await to_thread.run_sync(read, durable_url)

    assert (some, outcomes, len(found)) == (200, [True, False], 450)
    assert sorted(payloads(found)) == numbers if is_turned else payloads(found) == numbers  # type: ignore[type-var]


@pytest.mark.usefixtures("small_parts")
async def test_the_next_batch_waits_for_the_rest_of_one_that_is_partly_in(durable_url: str) -> None:
    events = [Event(run_id="r", payload=n) for n in range(201)]

    async with open_store(durable_url) as store:
        with pytest.raises(Killed):
            await append_batch(Dying(store, 1), SinkBatch(sink_id="s", number=3, events=events))  # type: ignore[arg-type]
        for number, rows in ((3, events[:-1]), (4, events)):
            with pytest.raises(Conflict, match="has appended batch 3 already"):
                await append_batch(store, SinkBatch(sink_id="s", number=number, events=rows))
        await append_batch(store, SinkBatch(sink_id="s", number=3, events=events))
        assert await append_batch(store, SinkBatch(sink_id="s", number=4, events=events[:1]))


async def test_a_part_is_bounded_in_bytes_too(url: str) -> None:
    events = [Event(run_id="r", payload=str(n) + "x" * 1_000_000) for n in range(70)]

    async with open_store(url) as store:
        with pytest.raises(Killed):
            await append_batch(Dying(store, 1), SinkBatch(sink_id="s", number=0, events=events))  # type: ignore[arg-type]
        some = (await store.journal.bounds()).head
        await append_batch(store, SinkBatch(sink_id="s", number=0, events=events))
        head = (await store.journal.bounds()).head

    assert (some, head) == (67, 70)


async def test_rows_that_fill_a_request_by_themselves_are_appended(durable_url: str) -> None:
    many = [Event(run_id="r", payload=n) for n in range(20_000)]
    large = [Event(run_id="r", payload="x" * (MAX_BYTES // 8 - 2)) for _ in range(8)]

    async with open_store(durable_url) as store:
        await append_batch(store, SinkBatch(sink_id="s", number=0, events=large + many))
        head = (await store.journal.bounds()).head

    assert (sum(event.size for event in large), head) == (MAX_BYTES, 20_008)


@pytest.mark.usefixtures("small_parts")
async def test_of_two_that_append_one_batch_at_once_each_part_is_in_once(durable_url: str) -> None:
    events = [Event(run_id="r", payload=n) for n in range(4_100)]

    async with open_store(durable_url) as one, open_store(durable_url) as other, anyio.create_task_group() as tasks:
        tasks.start_soon(append_batch, one, SinkBatch(sink_id="s", number=0, events=events))
        tasks.start_soon(append_batch, other, SinkBatch(sink_id="s", number=0, events=events[::-1]))

    found = await to_thread.run_sync(read, durable_url)
    assert sorted(payloads(found)) == list(range(4_100))  # type: ignore[type-var]


def test_a_sink_killed_among_its_batches_has_each_row_once(spark: SparkSession, url: str, tmp_path: Path) -> None:
    origin = f"sqlite:///{tmp_path}/origin.db"
    fill(origin, numbered(400))
    fill(url, [])
    command = [sys.executable, "-m", "tests.lake.stream_copy", origin, url, str(tmp_path), "50"]
    process = subprocess.Popen(command, start_new_session=True)

    try:
        anyio.run(reached, url, 150)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    at_kill = len(read(url))
    copy_stream(spark, origin, url, tmp_path, rows=50)

    assert at_kill < 400
    assert plain(read(url), *COPIED) == plain(read(origin), *COPIED)


async def reached(url: str, position: int) -> None:
    """Waits until the journal has grown so far."""
    async with open_store(url) as store:
        with anyio.fail_after(PATIENCE_S):
            while (head := (await store.journal.bounds()).head) < position:
                await store.journal.wait(head)

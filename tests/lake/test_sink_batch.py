"""A batch of the Spark sink is appended once, in parts of one transaction each; tested without Spark."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager

import anyio
import pytest
from anyio import to_thread

from tape.compose import open_store
from tape.core.errors import Conflict
from tape.core.event import Entry, Event
from tape.core.ports import Cells, Store, Transaction
from tape.core.sequence import MAX_BYTES
from tape.lake import sink_batch
from tape.lake.sink_batch import SinkBatch, append_batch
from tests.lake.journals import read


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
    """Stands for the kill of a process."""


class KilledStore:
    """A store whose process is killed before it begins one transaction too many."""

    def __init__(self, store: Store, transactions: int) -> None:
        self._store = store
        self._transactions = transactions

    @property
    def cells(self) -> Cells:
        return self._store.cells

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        if self._transactions == 0:
            raise Killed
        self._transactions -= 1
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
            await append_batch(KilledStore(store, 1), batch)  # type: ignore[arg-type]
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
            await append_batch(KilledStore(store, 1), SinkBatch(sink_id="s", number=3, events=events))  # type: ignore[arg-type]
        for number, rows in ((3, events[:-1]), (4, events)):
            with pytest.raises(Conflict, match="has appended batch 3 already"):
                await append_batch(store, SinkBatch(sink_id="s", number=number, events=rows))
        await append_batch(store, SinkBatch(sink_id="s", number=3, events=events))
        assert await append_batch(store, SinkBatch(sink_id="s", number=4, events=events[:1]))


async def test_a_part_is_bounded_in_bytes_too(url: str) -> None:
    events = [Event(run_id="r", payload=str(n) + "x" * 1_000_000) for n in range(70)]

    async with open_store(url) as store:
        with pytest.raises(Killed):
            await append_batch(KilledStore(store, 1), SinkBatch(sink_id="s", number=0, events=events))  # type: ignore[arg-type]
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

"""Blocks of the journal: cached as messages for later readers, never beyond what the journal holds."""

from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import closing

import pytest
from hypothesis import given, strategies as st

from tape.bus.journal import Journal
from tape.bus.selection import HistoryPage
from tape.bus.stream import StreamReader
from tape.compose import open_store, run_journal
from tape.core.event import Entry, Event
from tape.core.ids import Epoch
from tape.core.ports import Store
from tape.server.grpc.batches import BLOCK, MOST_BYTES, Batches, in_blocks
from tape.server.grpc.replay import Blocks
from tape.wire import tape_pb2 as pb
from tape.wire.messages.entries import entry_message

EPOCH = Epoch(7)


def entries(first: int, count: int, payload: str = "x") -> list[Entry]:
    return [Event(run_id="r", payload=payload).at(place, place, 1, 0, EPOCH) for place in range(first, first + count)]


def positions(messages: Sequence[bytes]) -> list[int]:
    return [entry.global_seq for message in messages for entry in pb.EventBatch.FromString(message).entries]


class Harness:
    """A journal in memory and the messages of its readers; `meanwhile` is called once during a read."""

    def __init__(self, store: Store, journal: Journal) -> None:
        self.store = store
        self.journal = journal
        self.batches = Batches()
        self.meanwhile: list[Event] = []

    async def publish(self, count: int) -> None:
        await self.journal.append([Event(run_id="r", payload=n) for n in range(count)], open=True)

    async def read(self, after: int = 0) -> list[bytes]:
        messages: list[bytes] = []

        async def write(some: Sequence[bytes], count: int) -> None:
            messages.extend(some)
            if self.meanwhile:
                await self.journal.append(self.meanwhile.pop())

        with closing(self.journal.reader(from_global_seq=after, follow=False)) as reader:
            await self._send_all(reader, Blocks(reader, self.store, self.batches, write))
        return messages

    async def _send_all(self, reader: StreamReader, blocks: Blocks) -> None:
        while not await blocks.send_page():
            assert not reader.view.is_journal_closed


@pytest.fixture
async def harness() -> AsyncIterator[Harness]:
    async with open_store("memory://") as store, run_journal(store) as journal:
        yield Harness(store, journal)


def test_p6_a_block_of_an_earlier_epoch_is_not_sent_in_a_later_one() -> None:
    batches, later = Batches(), Epoch(EPOCH + 1)
    lost = batches.messages(entries(1, BLOCK, "lost"))
    others = batches.messages([entry._replace(epoch=later) for entry in entries(1, BLOCK, "other")])

    assert (batches.block(EPOCH, 0), batches.block(later, 0)) == (lost, others) and lost != others


@given(st.integers(1, 1_000), st.integers(0, 400))
def test_readers_from_any_position_get_the_same_blocks(first: int, count: int) -> None:
    parts = list(in_blocks(entries(first, count)))

    assert [entry.global_seq for part in parts for entry in part] == [*range(first, first + count)]
    assert all(part[-1].global_seq % BLOCK == 0 for part in parts[:-1])


def test_a_message_is_what_protobuf_itself_would_write() -> None:
    there = entries(1, BLOCK, "für ♥")

    (message,) = Batches().messages(there)

    assert message == pb.EventBatch(entries=map(entry_message, there)).SerializeToString()


def test_a_block_that_weighs_too_much_is_several_messages() -> None:
    there = entries(1, BLOCK, "x" * 30_000)

    messages = Batches().messages(there)

    assert len(messages) > 1 and max(map(len, messages)) <= MOST_BYTES
    assert positions(messages) == [*range(1, BLOCK + 1)]


def test_the_block_cache_is_bounded_and_least_recently_used() -> None:
    batches = Batches(limit=60_000)
    for first in range(1, 301, BLOCK):
        batches.block(EPOCH, 0)
        batches.messages(entries(first, BLOCK, "x" * 150))

    assert [batches.block(EPOCH, after) is not None for after in (0, 100, 200)] == [True, False, True]


async def test_a_later_reader_gets_the_same_bytes(harness: Harness) -> None:
    await harness.publish(999)
    first = await harness.read()

    again, from_the_middle = await harness.read(), await harness.read(after=450)

    assert positions(first) == [*range(1, 1_000)]
    assert again == first and positions(from_the_middle) == [*range(451, 1_000)]


async def test_a_reader_that_does_not_follow_ends_at_the_head(harness: Harness) -> None:
    await harness.publish(250)
    await harness.read()
    harness.meanwhile = [Event(run_id="r", payload="late")]

    assert positions(await harness.read()) == [*range(1, 251)]
    assert positions(await harness.read(after=200)) == [*range(201, 252)]


async def test_blocks_are_read_from_the_store_once(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    await harness.publish(1_000)
    await harness.read()
    asked: list[int] = []
    read = StreamReader.replay

    def replay(reader: StreamReader) -> Awaitable[HistoryPage]:
        asked.append(reader.cursor)
        return read(reader)

    monkeypatch.setattr(StreamReader, "replay", replay)
    await harness.read()

    assert asked == [1_000]

"""Fan-out groups: each member gets every entry once and in order, also one that leaves and rejoins."""

from contextlib import AsyncExitStack
from random import Random

import anyio
import anyio.lowlevel
import pytest

from tape.bus.journal import Journal
from tape.bus.selection import RunSelection
from tape.bus.stream import StreamReader
from tape.bus.tail import Tail
from tape.core.event import Event
from tape.core.flow import Flow
from tape.core.ids import RunId
from tape.core.ports import Store
from tape.server.sse.fan_out import FanOutGroup, FanOutGroups
from tape.server.sse.sender import StopReason
from tape.server.sse.sources import JournalSource, RunSource, StreamSource
from tape.telemetry import Counter
from tape.wire.frames import ClientEvicted, Goaway, ReplayComplete
from tests.contract.events import upto
from tests.deadlines import DEADLINE_S
from tests.unit.server.sse.senders import SMALL, Client, ids, sending

MEMBERS = 6


@pytest.fixture(autouse=True)
async def open_run(journal: Journal) -> None:
    await journal.open_run("r1")


@pytest.fixture
def groups() -> FanOutGroups:
    return FanOutGroups()


async def publish(journal: Journal, count: int, payload: str = "") -> None:
    """Events in one append."""
    await journal.append([Event(run_id="r1", payload=payload) for _ in range(count)])


async def together(stack: AsyncExitStack, source: StreamSource, groups: FanOutGroups) -> list[Client]:
    """Clients that have all caught up."""
    clients = [await stack.enter_async_context(sending(source, groups=groups)) for _ in range(MEMBERS)]
    for client in clients:
        await client.first(ReplayComplete)
    return clients


async def test_members_of_a_group_get_the_same_entries(journal: Journal, run: RunSource, groups: FanOutGroups) -> None:
    async with AsyncExitStack() as stack:
        clients = await together(stack, run, groups)

        for count in (1, 3, 1):
            await publish(journal, count)

        assert [await client.entries(5) for client in clients] == [upto(5)] * MEMBERS


async def test_a_filtered_stream_gets_only_what_it_selects_beside_a_group(
    journal: Journal, groups: FanOutGroups
) -> None:
    async with AsyncExitStack() as stack:
        everyone = await together(stack, JournalSource(journal), groups)
        some = await stack.enter_async_context(sending(JournalSource(journal, where="payload > 5"), groups=groups))
        await some.first(ReplayComplete)

        for n in range(1, 9):
            await journal.append(Event(run_id="r1", payload=n))

        assert [await client.entries(8) for client in everyone] == [upto(8)] * MEMBERS
        assert await some.entries(3) == [6, 7, 8]


@pytest.mark.parametrize("seed", range(4))
async def test_a_member_that_leaves_and_rejoins_gets_each_entry_once(
    journal: Journal, store: Store, groups: FanOutGroups, seed: int
) -> None:
    random = Random(seed)
    sources: list[StreamSource] = [
        RunSource(journal, store.runs, RunId("r1")),
        JournalSource(journal, "/tape/event/**"),
    ]
    published = 0

    async with AsyncExitStack() as stack:
        clients = [client for source in sources for client in await together(stack, source, groups)]
        for _ in range(60):
            count = random.choice((1, 1, 2, 40))
            await publish(journal, count, "x" * random.choice((10, 3000)))
            published += count
            for client in random.sample(clients, 3):  # the others stop taking what is sent to them
                with anyio.move_on_after(random.choice((0, 0.001))):
                    await client.entries(published)

        assert [await client.entries(published) for client in clients] == [upto(published)] * len(clients)


class GroupMember:
    """A member that stores what it is sent and never leaves."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []

    def leave_group(self) -> None: ...

    def pump(self) -> None: ...

    def fail(self, error: Exception) -> None:
        raise error


def join(groups: FanOutGroups, reader: StreamReader, member: GroupMember) -> FanOutGroup:
    group = groups.find(reader, "seq", Counter("streamed", "…"))
    assert group is not None
    group.join(member, member.frames.append)
    return group


async def test_a_new_member_gets_no_entry_twice_that_the_group_has_not_sent_yet(
    journal: Journal, run: RunSource, groups: FanOutGroups
) -> None:
    early, late = run.open(0), run.open(0)
    for reader in (early, late):
        await reader.replay()
    first, second = GroupMember(), GroupMember()

    def catch_up(_: object) -> None:
        assert late.take(10)
        join(groups, late, second)

    join(groups, early, first)
    late.view.wait().add_done_callback(catch_up)  # runs before the listeners are called
    await publish(journal, 1)
    await publish(journal, 1)

    assert [len(member.frames) for member in (first, second)] == [2, 1]
    for reader in (early, late):
        reader.close()


@pytest.mark.parametrize("is_ahead_first", [False, True])
async def test_a_reader_beyond_the_tail_does_not_join_a_group_at_the_tail(
    journal: Journal, store: Store, groups: FanOutGroups, is_ahead_first: bool
) -> None:
    tail = Tail(await journal.head(), epoch=journal.epoch)  # of another node, which has no entry yet
    there, ahead = (StreamReader(RunSelection(store.journal, RunId("r1")), tail) for _ in range(2))
    await there.replay()
    entries = await journal.append([Event(run_id="r1", payload=n) for n in range(3)])
    assert len((await ahead.replay()).entries) == 3
    first, second = (ahead, there) if is_ahead_first else (there, ahead)
    members = {reader: GroupMember() for reader in (there, ahead)}

    join(groups, first, members[first])
    assert groups.find(second, "seq", Counter("streamed", "…")) is None
    tail.push(entries)
    while second.take(10):
        pass
    join(groups, second, members[second])
    tail.push(await journal.append(Event(run_id="r1", payload="all")))

    with anyio.fail_after(DEADLINE_S):
        while not members[second].frames:
            await anyio.lowlevel.checkpoint()
    assert b"".join(members[ahead].frames).count(b"event:") == 1
    assert b"".join(members[first].frames).count(b"event:") == (1 if is_ahead_first else 4)
    for reader in (there, ahead):
        reader.close()


class FullMember(GroupMember):
    """A member with a socket that is full after one write."""

    group: FanOutGroup

    def leave_group(self) -> None:
        self.group.leave(self)

    def take(self, frames: bytes) -> None:
        self.group.detach(self)


async def test_a_reader_that_joins_while_the_last_member_leaves_gets_new_entries(
    journal: Journal, run: RunSource, groups: FanOutGroups
) -> None:
    early, late = run.open(0), run.open(0)
    for reader in (early, late):
        await reader.replay()
    first, second = FullMember(), GroupMember()
    group = groups.find(early, "seq", Counter("streamed", "…"))
    assert group is not None
    group.join(first, first.take)
    first.group = group

    def catch_up(_: object) -> None:
        assert late.take(10)
        join(groups, late, second)

    late.view.wait().add_done_callback(catch_up)  # runs before the group sends, which empties it
    await publish(journal, 1)
    await publish(journal, 1)

    with anyio.fail_after(DEADLINE_S):
        while not second.frames:
            await anyio.lowlevel.checkpoint()
    assert len(second.frames) == 1
    for reader in (early, late):
        reader.close()


class Lost(GroupMember):
    """A member whose socket was lost a moment ago."""

    group: FanOutGroup
    is_asked_to_go_on = False

    def leave_group(self) -> None:
        self.group.leave(self)

    def pump(self) -> None:
        self.is_asked_to_go_on = True

    def take(self, frames: bytes) -> None:
        raise RuntimeError("the handler is closed")


async def test_a_member_with_a_lost_socket_leaves_the_group(
    journal: Journal, run: RunSource, groups: FanOutGroups
) -> None:
    reader = run.open(0)
    await reader.replay()
    lost, members = Lost(), [GroupMember(), GroupMember()]
    lost.group = join(groups, reader, members[0])
    lost.group.join(lost, lost.take)
    join(groups, reader, members[1])

    await publish(journal, 1)
    reader.move_to(lost.group.reader)
    await publish(journal, 1)

    with anyio.fail_after(DEADLINE_S):
        while len(members[0].frames) < 2:
            await anyio.lowlevel.checkpoint()
    assert [len(member.frames) for member in members] == [2, 2]
    assert lost.is_asked_to_go_on
    reader.close()


async def test_a_group_does_not_write_to_a_full_socket(journal: Journal, run: RunSource, groups: FanOutGroups) -> None:
    view = run.open(0).view
    async with AsyncExitStack() as stack:
        slow, *others = await together(stack, run, groups)
        for published in range(1, 101):
            await publish(journal, 1, "x" * 3000)
            for client in others:
                await client.entries(published)
            view.wake()  # a wake-up without a reason

        assert slow.pending() < 3 * SMALL
        assert await slow.entries(100) == upto(100)


async def test_a_burst_buffers_little_for_a_slow_socket(journal: Journal, run: RunSource, groups: FanOutGroups) -> None:
    async with AsyncExitStack() as stack:
        slow, other, *_ = await together(stack, run, groups)
        await publish(journal, 64, "x" * 20_000)
        await other.entries(64)

        assert slow.pending() < 64 * 1024
        assert await slow.entries(64) == upto(64)


async def test_a_member_left_behind_by_the_last_burst_is_evicted(
    journal: Journal, run: RunSource, groups: FanOutGroups
) -> None:
    async with sending(run, groups=groups, flow=Flow(max_queued=16)) as slow:
        await slow.first(ReplayComplete)
        await publish(journal, 200, "x" * 3000)

        with anyio.fail_after(DEADLINE_S):
            await slow.ended.wait()
        assert slow.end is StopReason.EVICTED
        evicted = await slow.first(ClientEvicted)
        assert ids(slow.frames) == upto(evicted.dropped_after or 0)


async def test_a_cancelled_member_leaves_no_group_and_no_view(
    journal: Journal, run: RunSource, groups: FanOutGroups
) -> None:
    reader = run.open(0)
    async with AsyncExitStack() as stack:
        await together(stack, run, groups)

    assert not reader.view.listeners
    assert reader.view.readers == 1
    reader.close()


async def test_entries_after_leaving_are_not_counted_as_streamed(
    journal: Journal, run: RunSource, groups: FanOutGroups
) -> None:
    async with sending(run, groups=groups) as slow:
        await slow.first(ReplayComplete)
        for _ in range(200):
            await publish(journal, 1, "x" * 3000)
        counted = slow.meters.streamed.total
        slow.socket.close()
        with anyio.fail_after(DEADLINE_S):
            await slow.ended.wait()

        assert slow.end is StopReason.GONE
        assert slow.meters.streamed.total == counted < 200


async def test_a_group_ends_with_its_run(journal: Journal, run: RunSource, groups: FanOutGroups) -> None:
    async with AsyncExitStack() as stack:
        clients = await together(stack, run, groups)
        await publish(journal, 2)
        await journal.close_run("r1")

        assert [await client.entries(2) for client in clients] == [upto(2)] * MEMBERS
        with anyio.fail_after(DEADLINE_S):
            for client in clients:
                await client.ended.wait()
        assert {client.end for client in clients} == {StopReason.OVER}


async def test_a_member_that_leaves_does_not_affect_the_others(
    journal: Journal, run: RunSource, groups: FanOutGroups
) -> None:
    async with AsyncExitStack() as stack:
        clients = await together(stack, run, groups)
        await publish(journal, 1)
        clients[0].socket.close()
        for client in clients[1:]:
            await client.entries(1)
        for _ in range(5):
            await publish(journal, 1)

        assert [await client.entries(6) for client in clients[1:]] == [upto(6)] * (MEMBERS - 1)


async def test_a_member_gets_all_group_entries_before_its_goaway(
    journal: Journal, run: RunSource, groups: FanOutGroups
) -> None:
    async with AsyncExitStack() as stack:
        first, second, *_ = await together(stack, run, groups)
        await publish(journal, 3)
        first.goaway(50)
        await publish(journal, 2)

        await first.first(Goaway)
        assert ids(first.frames) == upto(3)
        assert await second.entries(5) == upto(5)


async def test_broadcast_bytes_are_counted_for_each_member(
    journal: Journal, run: RunSource, groups: FanOutGroups
) -> None:
    async with AsyncExitStack() as stack:
        clients = await together(stack, run, groups)
        await publish(journal, 2)
        for client in clients:
            await client.entries(2)

        assert sum(client.meters.streamed.total for client in clients) == 2 * MEMBERS

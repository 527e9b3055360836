"""Streams: P5, P6, P8, P9, how they begin, end and miss."""

import gc
from contextlib import aclosing
from functools import partial

import anyio
import pytest

from tape.bus.journal import Journal
from tape.bus.tail import Tail
from tape.compose import run_journal
from tape.core.errors import BrokerOverflowError, InvalidCursor, Unavailable, UsageError
from tape.core.event import Entry, Event
from tape.core.ids import GlobalSeq, RunId
from tape.core.ports import Store
from tests.conftest import Scale
from tests.contract.backends import Backend, LossyWake, needs_ledgers
from tests.contract.events import drain, fill, make_event, positions, seqs, take, upto
from tests.deadlines import DEADLINE_S


async def test_a_stream_replays_and_then_follows(journal: Journal) -> None:
    await fill(journal, "r1", 3)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(journal.append, [make_event(n=4), make_event(n=5)])
        found = await take(journal.stream(run_id="r1"), 5)

    assert seqs(found) == upto(5)


async def test_p5_nothing_arrives_below_a_position_that_was_seen(journal: Journal, scale: Scale) -> None:
    rounds = scale(40)

    async def publish(writer: int) -> None:
        for n in range(rounds):
            await journal.append([make_event(f"w{writer}", n)] * (1 + n % 3), open=True)

    async with anyio.create_task_group() as tasks:
        for writer in range(8):
            tasks.start_soon(publish, writer)
        total = 8 * sum(1 + n % 3 for n in range(rounds))
        found = await take(journal.stream(), total)

    assert positions(found) == upto(total)


@pytest.mark.parametrize(("step", "total"), [(1, 300), (2, 600), (7, 1000), (300, 1000), (700, 1000)])
async def test_p6_over_reconnects_with_its_last_id_a_reader_gets_each_entry_once(
    journal: Journal, step: int, total: int
) -> None:
    await fill(journal, "r1", total)
    found: list[Entry] = []

    while len(found) < total - step:
        found += await take(journal.stream(run_id="r1", from_seq=len(found) + 1), step)
    await journal.close_run("r1")
    found += await drain(journal.stream(run_id="r1", from_seq=len(found) + 1))

    assert seqs(found) == upto(total)


async def test_p6_a_cross_run_reader_resumes_inside_a_request(journal: Journal) -> None:
    await journal.append([make_event("a", 1), make_event("b", 2), make_event("a", 3)], open=True)

    found = await drain(journal.stream(from_global_seq=1, follow=False))

    assert positions(found) == [2, 3]


async def test_p8_a_reader_that_does_not_read_delays_no_other(journal: Journal, scale: Scale) -> None:
    await fill(journal, "r1", 1)
    idle = journal.stream(run_id="r1")
    await idle.__anext__()

    for n in range(scale(90)):
        await journal.append([make_event(n=n)] * 100)

    newest = await journal.head()
    assert seqs(await take(journal.stream(run_id="r1", from_seq=newest - 49), 50)) == upto(newest, first=newest - 49)
    await idle.aclose()


async def test_p8_what_the_tail_holds_is_bounded_in_bytes(journal: Journal) -> None:
    tail = Tail(GlobalSeq(0), entries=1000, limit=1 << 20)
    view = tail.join(RunId("r1"))
    big = Event(run_id="r1", payload="x" * 100_000)

    for _ in range(5):
        tail.push(await journal.append([big] * 20, open=True))

    entries, size = view.lag(0)
    assert size <= (1 << 20) * 9 / 8 + 2 * big.size
    assert entries < 20 and view.base > 0


async def test_p9_losing_every_wake_only_delays(backend: Backend) -> None:
    async with backend.two_nodes(LossyWake()) as (writer, reader):
        await fill(writer, "r1", 1)
        stream = reader.stream(run_id="r1")
        await stream.__anext__()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(writer.append, make_event(n=2))
            assert seqs(await take(stream, 1)) == [2]


async def test_another_node_sees_what_is_appended_and_the_end(backend: Backend) -> None:
    async with backend.two_nodes() as (writer, reader):
        await writer.open_run("r1")
        async with anyio.create_task_group() as tasks:
            found: list[Entry] = []

            async def read() -> None:
                found.extend(await drain(reader.stream(run_id="r1")))

            tasks.start_soon(read)
            for n in range(20):
                await writer.append(make_event(n=n))
            await writer.close_run("r1")

    assert seqs(found) == upto(20)


async def test_nodes_that_both_write_both_see_everything(backend: Backend, scale: Scale) -> None:
    rounds = scale(30)
    async with backend.two_nodes() as nodes, anyio.create_task_group() as tasks:

        async def publish(node: Journal, name: str) -> None:
            for n in range(rounds):
                await node.append(make_event(name, n), open=True)

        for number, node in enumerate(nodes):
            tasks.start_soon(publish, node, f"r{number}")
        for node in nodes:
            assert positions(await take(node.stream(), 2 * rounds)) == upto(2 * rounds)


async def test_a_stream_of_a_run_that_is_not_there_yet_waits_for_it(journal: Journal) -> None:
    async with anyio.create_task_group() as tasks:
        found: list[Entry] = []

        async def read() -> None:
            found.extend(await drain(journal.stream(run_id="later")))

        tasks.start_soon(read)
        await anyio.wait_all_tasks_blocked()
        await fill(journal, "later", 3)
        await journal.close_run("later")

    assert seqs(found) == upto(3)


async def test_without_follow_an_unknown_run_ends_at_once(journal: Journal) -> None:
    assert await drain(journal.stream(run_id="never", follow=False)) == []


async def test_close_drains_more_than_one_group(journal: Journal) -> None:
    await journal.open_run("r1")
    async with anyio.create_task_group() as tasks:
        for n in range(5):
            tasks.start_soon(journal.append, [make_event(n=n)] * 900)
        await anyio.lowlevel.checkpoint()
        closed_at = await journal.close_run("r1")

    assert closed_at == 4500
    assert seqs(await drain(journal.stream(run_id="r1"))) == upto(4500)


async def test_close_drains_also_when_the_newest_append_was_cancelled(journal: Journal) -> None:
    await journal.open_run("r1")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(journal.append, [make_event()] * 900)
        tasks.start_soon(journal.append, [make_event()] * 900)
        with anyio.CancelScope() as scope:
            scope.cancel()
            await journal.append([make_event()] * 900)
        await anyio.lowlevel.checkpoint()

        assert await journal.close_run("r1") >= 1800


async def test_closing_the_journal_waits_for_pending_appends(backend: Backend, store: Store) -> None:
    async with anyio.create_task_group() as tasks, run_journal(store) as journal:
        await journal.open_run("r1")
        for n in range(5):
            tasks.start_soon(journal.append, [make_event(n=n)] * 900)
        await anyio.lowlevel.checkpoint()

    assert (await store.journal.bounds()).head == 4500


async def test_a_closed_journal_wakes_all_waiters(store: Store) -> None:
    async with run_journal(store) as journal:
        await fill(journal, "r1", 1)
        live = journal.stream()
        await live.__anext__()

    for late in (live.__anext__(), journal.append(make_event())):
        with pytest.raises(Unavailable), anyio.fail_after(DEADLINE_S):
            await late


async def test_repeated_requests_cost_a_live_reader_nothing(backend: Backend, scale: Scale) -> None:
    rounds = scale(40)
    async with backend.two_nodes() as (one, other), anyio.create_task_group() as tasks:

        async def publish(node: Journal, name: str) -> None:
            for n in range(rounds):
                for _ in range(2):
                    await node.append(make_event(name, n), key=f"{name}{n % 7 * 10 + n}", open=True)

        for number, node in enumerate((one, other) * 3):
            tasks.start_soon(publish, node, f"w{number % 2}")
        assert positions(await take(other.stream(), 2 * rounds)) == upto(2 * rounds)


async def test_an_idle_stream_ends_when_its_run_is_closed_without_an_entry(journal: Journal) -> None:
    await journal.open_run("r1")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(journal.close_run, "r1")
        assert await drain(journal.stream(run_id="r1")) == []


async def test_a_reader_after_the_close_gets_everything(journal: Journal) -> None:
    await fill(journal, "r1", 5)
    await journal.close_run("r1")

    assert seqs(await drain(journal.stream(run_id="r1"))) == upto(5)
    assert seqs(await drain(journal.stream(run_id="r1", from_seq=3))) == [3, 4, 5]


async def test_a_reopened_run_continues_at_its_last_seq_plus_one(journal: Journal) -> None:
    await fill(journal, "r1", 2)
    await journal.close_run("r1")
    await journal.open_run("r1")
    await journal.append(make_event(n=3))

    found = await take(journal.stream(run_id="r1"), 3)

    assert seqs(found) == upto(3)


async def test_from_seq_zero_and_one_are_equal(journal: Journal) -> None:
    await fill(journal, "r1", 3)

    zero = await drain(journal.stream(run_id="r1", from_seq=0, follow=False))

    assert zero == await drain(journal.stream(run_id="r1", from_seq=1, follow=False))


async def test_without_follow_a_stream_ends_at_the_head_it_found(journal: Journal) -> None:
    await fill(journal, "r1", 600)
    stream = journal.stream(run_id="r1", follow=False)

    first = await stream.__anext__()
    await journal.append([make_event(n=n) for n in range(100)])

    assert [first.seq, *seqs(await drain(stream))] == upto(600)


async def test_a_cursor_beyond_the_head_raises(journal: Journal) -> None:
    await fill(journal, "r1", 3)

    assert seqs(await drain(journal.stream(run_id="r1", from_seq=4, follow=False))) == []
    with pytest.raises(InvalidCursor):
        await drain(journal.stream(run_id="r1", from_seq=5))
    with pytest.raises(InvalidCursor):
        await drain(journal.stream(from_global_seq=4))


async def test_invalid_options_raise_at_the_call(journal: Journal) -> None:
    with pytest.raises(UsageError):
        journal.stream(subject="no slash")
    with pytest.raises(UsageError):
        journal.stream(where="1 +")
    with pytest.raises(UsageError):
        journal.stream(from_seq=3)
    with pytest.raises(InvalidCursor):
        journal.stream(from_global_seq=-1)


async def test_a_run_trimmed_to_its_floor_is_read_from_there_and_not_before(journal: Journal, store: Store) -> None:
    await fill(journal, "r1", 10)
    await store.retention.trim_run(RunId("r1"), keep=4)

    assert seqs(await drain(journal.stream(run_id="r1", from_seq=7, follow=False))) == [7, 8, 9, 10]
    with pytest.raises(BrokerOverflowError) as gap:
        await drain(journal.stream(run_id="r1", from_seq=6, follow=False))
    assert (gap.value.run_id, gap.value.requested_seq, gap.value.available_from) == ("r1", 6, 7)


async def test_a_journal_is_read_from_its_floor_and_not_before(journal: Journal, store: Store) -> None:
    await fill(journal, "r1", 10)
    await store.retention.trim(GlobalSeq(6))

    assert await journal.floor() == 7
    assert positions(await drain(journal.stream(from_global_seq=6, follow=False))) == [7, 8, 9, 10]
    with pytest.raises(BrokerOverflowError) as gap:
        await drain(journal.stream(from_global_seq=5, follow=False))
    assert (gap.value.run_id, gap.value.requested_seq, gap.value.available_from) == (None, 6, 7)


async def test_a_cross_run_reader_gets_a_gap_where_a_run_was_trimmed(journal: Journal, store: Store) -> None:
    await journal.append([make_event("a"), make_event("b"), make_event("a"), make_event("b")], open=True)
    await store.retention.trim_run(RunId("a"), keep=1)

    with pytest.raises(BrokerOverflowError) as gap:
        await drain(journal.stream(follow=False))

    assert (gap.value.requested_seq, gap.value.available_from) == (1, 2)
    assert seqs(await drain(journal.stream(run_id="b", follow=False))) == [1, 2]


async def test_a_slow_reader_over_a_trimmed_run_gets_everything_or_a_gap(journal: Journal, store: Store) -> None:
    await fill(journal, "r1", 600)
    stream = journal.stream(run_id="r1")
    found = [await stream.__anext__()]
    await journal.append([make_event(n=n) for n in range(400)])
    await store.retention.trim_run(RunId("r1"), keep=10)

    with pytest.raises(BrokerOverflowError) as gap, anyio.fail_after(DEADLINE_S):
        async for entry in stream:
            found.append(entry)

    assert seqs(found) == upto(len(found))
    assert (gap.value.requested_seq, gap.value.available_from) == (len(found) + 1, 991)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("/**", [1, 2, 3, 4, 5]),
        ("/shop/**", [1, 2, 3]),
        ("/shop/*", [2]),
        ("/shop/order/*", [1]),
        ("/*/order/1", [1, 4]),
        ("/shop_/order/1", []),
        ("/Shop/**", [5]),
    ],
)
async def test_a_pattern_selects_exactly_what_it_matches(journal: Journal, pattern: str, expected: list[int]) -> None:
    subjects = ["/shop/order/1", "/shop/order", "/shop", "/shopx/order/1", "/Shop/order"]

    await journal.append([make_event(subject=subject) for subject in subjects], open=True)

    assert positions(await drain(journal.stream(subject=pattern, follow=False))) == expected


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("/a/b/**", ["/a/b/x", "/a/b"]),
        ("/a/b/*", ["/a/b/x"]),
        ("/a/b", ["/a/b"]),
        ("/a/*/x", ["/a/b-c/x", "/a/b/x"]),
        ("/*/b/**", ["/a/b/x", "/a/b"]),
    ],
)
async def test_a_pattern_gives_nothing_that_only_begins_like_it(
    journal: Journal, pattern: str, expected: list[str]
) -> None:
    subjects = ["/a/b-c/x", "/a/b.c", "/a/b-c", "/a/b0", "/a/bc/y", "/a/b/x", "/a/b"]
    await journal.append([make_event(subject=subject) for subject in subjects], open=True)

    found = await drain(journal.stream(subject=pattern, follow=False))

    assert [entry.subject for entry in found] == expected


@needs_ledgers
async def test_p5_entries_come_in_the_order_of_positions_wherever_their_rows_lie(
    store: Store, journal: Journal
) -> None:
    await journal.append([make_event("r1", n, subject="/s/one") for n in range(60)], open=True)
    await journal.fork("r1", 50, run_id="child")
    for subject in ("/moved", "/s/one"):  # an update moves a row of Postgres, in its file and in the index of subjects
        async with store.transaction() as tx:
            for place in range(1, 60, 7):
                moved = {"place": place, "subject": subject}
                await tx.fetch("UPDATE tape_journal SET subject = :subject WHERE global_seq = :place", moved)

    selections: list[dict[str, str]] = [{}, {"subject": "/s/one"}, {"subject": "/s/*"}, {"run_id": "r1"}]
    found = [positions(await drain(journal.stream(follow=False, **each))) for each in selections]  # type: ignore[arg-type]

    assert found == [upto(61), upto(60), upto(60), upto(60)]
    assert positions(await drain(journal.stream(run_id="child", follow=False))) == [*upto(50), 61]


async def test_a_live_pattern_sees_only_its_own(journal: Journal) -> None:
    async with anyio.create_task_group() as tasks:
        for n in range(9):
            tasks.start_soon(partial(journal.append, make_event(n=n, subject=f"/s/{n % 3}"), open=True))
        found = await take(journal.stream(subject="/s/1"), 3)

    assert {entry.subject for entry in found} == {"/s/1"}
    assert positions(found) == sorted(positions(found))


async def test_a_frequent_subject_is_read_in_order(journal: Journal) -> None:
    await journal.append([make_event(n=n, subject=f"/s/{n % 2}") for n in range(900)], open=True)
    await journal.append([make_event(n=n, subject=f"/s/{n % 2}") for n in range(900)])

    found = await drain(journal.stream(subject="/s/1", follow=False))

    assert positions(found) == upto(1800)[1::2]


@pytest.mark.parametrize("letter", ["x", "é"])
async def test_history_of_many_megabytes_is_read_completely(journal: Journal, letter: str) -> None:
    big = Event(run_id="r1", payload=letter * 450_000, subject="/big/one")
    for _ in range(5):
        await journal.append([big] * 5, open=True)

    assert positions(await drain(journal.stream(follow=False))) == upto(25)
    assert positions(await drain(journal.stream(subject="/big/*", follow=False))) == upto(25)
    assert seqs(await drain(journal.stream(run_id="r1", follow=False))) == upto(25)


async def test_a_rare_subject_is_found_however_far_away(journal: Journal) -> None:
    for n in range(25):
        await journal.append([make_event(f"r{n}")] * 1000, open=True)
    await journal.append(make_event(subject="/rare/one"), open=True)

    assert positions(await drain(journal.stream(subject="/rare/**", follow=False))) == [25_001]
    assert positions(await drain(journal.stream(subject="/rare/one", follow=False))) == [25_001]


async def test_a_predicate_selects_and_its_errors_match_nothing(journal: Journal) -> None:
    await journal.append([make_event(n=1), make_event(n=5, subject="/no/n"), make_event("r2", 9)], open=True)

    assert positions(await drain(journal.stream(where="payload.n > 3", follow=False))) == [2, 3]
    assert positions(await drain(journal.stream(where="payload.missing > 3", follow=False))) == []
    assert positions(await drain(journal.stream(run_id="r1", subject="/no/*", where="true", follow=False))) == [2]


async def test_cancelled_and_abandoned_streams_leave_no_view(store: Store) -> None:
    async with run_journal(store) as journal:
        tail: Tail = journal._tail  # noqa: SLF001 - what must be empty is inside
        await fill(journal, "r1", 1)
        async with anyio.create_task_group() as tasks:
            for selection in ({"run_id": "r1"}, {"subject": "/x/**"}, {}):
                for _ in range(10):
                    tasks.start_soon(drain, journal.stream(**selection))  # type: ignore[arg-type]
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
        async with aclosing(journal.stream(run_id="r1")) as stream:
            await stream.__anext__()

        gc.collect()
        assert not tail.has_readers.is_set()
        assert tail.run_ids == []


async def test_two_readers_of_one_pattern_get_the_same_bytes(journal: Journal) -> None:
    await fill(journal, "r1", 700)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(journal.append, [make_event(n=n) for n in range(300)])
        one = await take(journal.stream(subject="/tape/**"), 1000)
    other = await take(journal.stream(subject="/tape/event/*/r1"), 1000)

    assert one == other

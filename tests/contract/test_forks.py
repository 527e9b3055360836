"""Forks: a child is its parent's entries 1…k and then its own, and its parent does not change. P16, P18."""

from collections.abc import Sequence
from contextlib import aclosing
from hashlib import sha256

import anyio
import pytest

from tape.bus.journal import Journal
from tape.bus.selection import RunSelection
from tape.bus.stream import stream
from tape.bus.tail import Tail
from tape.core.errors import (
    Conflict,
    InvalidCursor,
    KeyConflict,
    LimitReached,
    RunNotFound,
    UsageError,
)
from tape.core.event import Entry
from tape.core.fork import Ancestor, Fork, Segment
from tape.core.fork_request import fork_request
from tape.core.ids import RunId, Seq
from tape.core.ports import RunPage, Store, TermReader
from tests.contract.backends import Backend, needs_ledgers
from tests.contract.events import append, drain, entries, fill, make_event, positions, read_all, request, seqs, upto
from tests.deadlines import DEADLINE_S

PARENT, CHILD = RunId("parent"), RunId("child")


async def test_a_child_is_its_parent_up_to_the_fork_and_then_its_own(journal: Journal) -> None:
    await fill(journal, "parent", 5)
    forked = await journal.fork("parent", 3, run_id="child", mutation={"wind": 9}, reason="what if")
    await journal.append(make_event("child", 6))

    child, parent = await read_all(journal, "child"), await read_all(journal, "parent")

    assert seqs(child) == upto(6) and seqs(parent) == upto(5)
    assert child[:3] == parent[:3] and child[3:5] == forked
    assert positions(child) == sorted(positions(child))


async def test_a_fork_entry_names_the_parent_and_the_mutation(journal: Journal) -> None:
    await fill(journal, "parent", 2)

    forked, mutation = await journal.fork("parent", 2, run_id="child", mutation=[1], reason="what if")

    assert (forked.kind, forked.type, forked.subject) == ("run", "fork", "/tape/run/forked/parent/child")
    assert forked.payload == {"parent_run_id": "parent", "at_seq": 2, "reason": "what if"}
    assert (mutation.kind, mutation.type, mutation.payload, mutation.seq) == ("event", "mutation", [1], 4)


@pytest.mark.parametrize("from_seq", [0, 1, 2, 3, 4, 5, 7])
async def test_a_child_is_read_from_any_seq(journal: Journal, from_seq: int) -> None:
    await fill(journal, "parent", 4)
    await journal.fork("parent", 3, run_id="child")
    await journal.append([make_event("child", n) for n in (5, 6)])

    found = await read_all(journal, "child", from_seq)

    assert seqs(found) == upto(6, max(from_seq, 1))


@pytest.mark.parametrize("at_seq", [0, 4])
@pytest.mark.parametrize("is_closed", [False, True])
async def test_a_live_or_closed_run_is_forked_from_its_beginning_to_its_head(
    journal: Journal, at_seq: int, is_closed: bool
) -> None:
    await fill(journal, "parent", 4)
    if is_closed:
        await journal.close_run("parent")

    (forked,) = await journal.fork("parent", at_seq)

    assert seqs(await read_all(journal, forked.run_id)) == upto(at_seq + 1)


async def test_a_run_that_was_only_opened_can_be_forked(journal: Journal) -> None:
    await journal.open_run("parent")

    (forked,) = await journal.fork("parent", 0, run_id="child")

    assert await read_all(journal, "child") == [forked]


async def test_a_fork_of_a_fork_reads_all_its_ancestors(journal: Journal, store: Store) -> None:
    await fill(journal, "parent", 3)
    await journal.fork("parent", 2, run_id="child", mutation=1)
    await journal.fork("child", 3, run_id="grandchild")
    await journal.fork("grandchild", 1, run_id="nephew")

    assert [entry.run_id for entry in await read_all(journal, "grandchild")] == ["parent"] * 2 + ["child", "grandchild"]
    assert [entry.run_id for entry in await read_all(journal, "nephew")] == ["parent", "nephew"]
    heads = await store.runs.heads([RunId("grandchild"), RunId("nephew")])
    assert heads[RunId("grandchild")].lineage == ((PARENT, 2), (CHILD, 3))
    assert heads[RunId("nephew")].lineage == (Ancestor(PARENT, Seq(1)),)


async def test_parent_and_child_grow_independently(journal: Journal) -> None:
    await fill(journal, "parent", 2)
    await journal.fork("parent", 2, run_id="child")

    await journal.append([make_event("parent", 3), make_event("child", 3), make_event("parent", 4)])

    assert [entry.run_id for entry in await read_all(journal, "child")] == ["parent"] * 2 + ["child"] * 2
    assert {entry.run_id for entry in await read_all(journal, "parent")} == {"parent"}


async def test_one_group_appends_to_a_parent_forks_it_and_forks_the_fork(store: Store) -> None:
    group = [
        request(make_event("parent", 1), make_event("parent", 2)),
        fork_request(CHILD, Fork(PARENT, Seq(2)), mutation=1),
        request(make_event("child", 5), opens=False),
        fork_request(RunId("grandchild"), Fork(CHILD, Seq(5))),
        fork_request(CHILD, Fork(PARENT, Seq(1))),
    ]

    *outcomes, again = await store.journal.append(group)

    assert [seqs(entries(outcome)) for outcome in outcomes] == [[1, 2], [3, 4], [5], [6]]
    assert isinstance(again, Conflict)


async def test_a_child_must_be_new(journal: Journal) -> None:
    await fill(journal, "parent", 2)
    await fill(journal, "child", 1)
    await journal.close_run("child")
    await journal.reap("child")

    with pytest.raises(Conflict, match="run 'child' is there already"):
        await journal.fork("parent", 1, run_id="child")


async def test_a_parent_must_exist(journal: Journal) -> None:
    with pytest.raises(RunNotFound) as refused:
        await journal.fork("parent", 0, run_id="child")

    assert refused.value.run_id == "parent"
    assert await journal.live_runs() == []


@pytest.mark.parametrize("at_seq", [3, 1 << 60])
async def test_a_fork_beyond_the_head_is_refused_with_the_bounds(journal: Journal, at_seq: int) -> None:
    await fill(journal, "parent", 2)

    with pytest.raises(UsageError, match=f"can be forked at 0 to 2, not at {at_seq}"):
        await journal.fork("parent", at_seq)


@pytest.mark.parametrize("at_seq", [-1, True, "1"])
async def test_a_fork_is_at_a_seq(journal: Journal, at_seq: int) -> None:
    await fill(journal, "parent", 2)

    with pytest.raises(UsageError, match="at a seq from 0 on"):
        await journal.fork("parent", at_seq)


async def test_system_runs_are_neither_forked_nor_opened(journal: Journal, store: Store) -> None:
    await append(store, make_event("tape.value.00ff"))
    await fill(journal, "parent", 1)

    with pytest.raises(UsageError, match="belong to Tape"):
        await journal.fork("tape.value.00ff", 0)
    with pytest.raises(UsageError, match="belong to Tape"):
        await journal.fork("parent", 0, run_id="tape.mine")


async def test_the_depth_of_a_lineage_is_limited(store: Store) -> None:
    await append(store, make_event("run-0", 0))
    group = [fork_request(RunId(f"run-{n}"), Fork(RunId(f"run-{n - 1}"), Seq(n))) for n in range(1, 258)]

    *outcomes, last = await store.journal.append(group)

    assert [entries(outcome)[0].seq for outcome in outcomes] == upto(257, 2)
    assert isinstance(last, LimitReached) and "257 ancestors" in str(last)


async def test_the_same_key_forks_once(journal: Journal) -> None:
    await fill(journal, "parent", 3)

    first = await journal.fork("parent", 2, mutation=1, key="k")
    again = await journal.fork("parent", 2, mutation=1, key="k")

    assert again == first
    with pytest.raises(KeyConflict):
        await journal.fork("parent", 2, run_id=first[0].run_id, mutation=2, key="k")
    with pytest.raises(KeyConflict):
        await journal.fork("parent", 1, run_id=first[0].run_id, mutation=1, key="k")


async def test_a_child_has_its_parents_content_type(journal: Journal) -> None:
    plain = make_event("parent", 1)
    blob = type(plain)(run_id="parent", payload=b"x", content_type="text/plain")
    await journal.append(blob, open=True)
    await journal.fork("parent", 1, run_id="child")

    with pytest.raises(UsageError, match="holds text/plain"):
        await journal.append(make_event("child", 3))
    (entry,) = await journal.append(type(plain)(run_id="child", payload=b"y", content_type="text/plain"))
    assert entry.seq == 3


async def test_a_child_can_be_appended_closed_and_reopened(journal: Journal, store: Store) -> None:
    await fill(journal, "parent", 2)
    await journal.fork("parent", 2, run_id="child")
    before = (await store.runs.heads([CHILD]))[CHILD]
    await journal.append(make_event("child", 4), expected_seq=3)
    await journal.close_run("child")
    await journal.append(make_event("child", 5), open=True)

    head = (await store.runs.heads([CHILD]))[CHILD]
    assert (before.opened_seq, before.floor, before.last_seq, before.is_open) == (0, 1, 3, True)
    assert (head.opened_seq, head.last_seq, head.lineage) == (4, 5, before.lineage)
    assert seqs(await read_all(journal, "child")) == upto(5)


async def test_everything_else_sees_each_entry_once(journal: Journal) -> None:
    await fill(journal, "parent", 3)
    for _ in range(4):
        await journal.fork("parent", 3)

    everything = await drain(journal.stream(follow=False))
    subjects = await drain(journal.stream(subject="/tape/event/**", follow=False))

    assert positions(everything) == upto(7)
    assert positions(subjects) == upto(3)


async def test_a_child_is_listed_with_all_it_inherits(journal: Journal) -> None:
    await fill(journal, "parent", 3)
    await journal.fork("parent", 2, run_id="child")

    assert {run.run_id: run.n_events for run in await journal.live_runs()} == {"parent": 3, "child": 3}


async def test_p16_a_parent_that_is_written_to_and_forked_keeps_its_hash(journal: Journal) -> None:
    await fill(journal, "parent", 20)
    before = hash_of(await read_all(journal, "parent"))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(write, journal, "parent", 50)
        for n in range(100):
            tasks.start_soon(journal.fork, "parent", n % 21)

    after = await read_all(journal, "parent")
    assert seqs(after) == upto(70)
    assert hash_of(after[:20]) == before
    assert {entry.run_id for entry in after} == {"parent"}
    for n in range(0, 71, 7):
        await journal.fork("parent", n)
    assert hash_of(await read_all(journal, "parent")) == hash_of(after)


async def test_a_child_is_tailed_from_its_first_moment(journal: Journal) -> None:
    await fill(journal, "parent", 3)
    await journal.fork("parent", 2, run_id="child")
    tail = journal.stream(run_id="child")

    async with aclosing(tail), anyio.create_task_group() as tasks:
        tasks.start_soon(write, journal, "child", 3)
        with anyio.fail_after(DEADLINE_S):
            found = [await anext(tail) for _ in range(6)]

    assert seqs(found) == upto(6)


async def test_a_reader_that_waits_for_a_child_gets_what_it_inherits(journal: Journal) -> None:
    await fill(journal, "parent", 3)
    tail = journal.stream(run_id="child")

    async with aclosing(tail), anyio.create_task_group() as tasks:
        tasks.start_soon(fork_late, journal)
        with anyio.fail_after(DEADLINE_S):
            found = [await anext(tail) for _ in range(5)]

    assert seqs(found) == upto(5)
    assert [entry.run_id for entry in found] == ["parent"] * 2 + ["child"] * 3


async def test_another_node_waits_for_a_child_and_reads_it_to_its_end(backend: Backend) -> None:
    async with backend.two_nodes() as (one, other):
        await fill(one, "parent", 3)
        found: list[Entry] = []
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(collect, other, found)
            await fork_late(one)
            await one.close_run("child")

    assert seqs(found) == upto(5)


async def test_a_childs_stream_ends_where_the_child_is_closed(journal: Journal) -> None:
    await fill(journal, "parent", 3)
    await journal.fork("parent", 2, run_id="child")
    await journal.close_run("child")

    assert seqs(await drain(journal.stream(run_id="child"))) == upto(3)
    assert seqs(await drain(journal.stream(run_id="child", from_seq=4))) == []
    with pytest.raises(InvalidCursor):
        await drain(journal.stream(run_id="child", from_seq=5))


async def test_a_child_longer_than_a_page_has_no_hole(journal: Journal) -> None:
    await fill(journal, "parent", 700)
    await journal.fork("parent", 600, run_id="child")
    await journal.append([make_event("child", n) for n in range(500)])

    assert seqs(await read_all(journal, "child")) == upto(1101)
    assert seqs(await read_all(journal, "child", 590)) == upto(1101, 590)


async def test_many_ancestors_take_no_more_pages_than_one_run(journal: Journal, store: Store) -> None:
    await fill(journal, "flat", 600)
    await fill(journal, "run-0", 12)
    for n in range(1, 50):
        await journal.fork(f"run-{n - 1}", 12 * n, run_id=f"run-{n}")
        await journal.append([make_event(f"run-{n}", n)] * 11)

    deep, flat = await pages_of(store, "run-49"), await pages_of(store, "flat")

    assert deep <= flat + 1  # the first page tells that the run is a fork


async def test_large_payloads_are_inherited_completely(journal: Journal) -> None:
    for run_id in ("parent", "other"):
        await journal.append([type(make_event())(run_id=run_id, payload="x" * 900_000) for _ in range(6)], open=True)
    await journal.fork("parent", 6, run_id="child")

    assert seqs(await read_all(journal, "child")) == upto(7)


@needs_ledgers
async def test_a_block_forks_or_leaves_no_trace(store: Store) -> None:
    await append(store, make_event("parent", 1))

    with pytest.raises(UsageError, match="0 to 1, not at 2"):
        async with store.transaction() as tx:
            tx.append(fork_request(CHILD, Fork(PARENT, Seq(1))))
            tx.append(fork_request(RunId("other"), Fork(PARENT, Seq(2))))
    assert await store.runs.heads([CHILD]) == {}

    async with store.transaction() as tx:
        tx.append(fork_request(CHILD, Fork(PARENT, Seq(1))))
        tx.append(fork_request(RunId("grandchild"), Fork(CHILD, Seq(2))))
    assert [seqs(outcome) for outcome in tx.outcomes] == [[2], [3]]


async def pages_of(store: Store, run_id: str) -> int:
    """How often the store is asked for a run of 600 entries."""
    reader = CountingReader(store.journal)
    selection = RunSelection(reader, RunId(run_id), follow=False)
    found = await drain(stream(selection, Tail((await store.journal.bounds()).head)))
    assert seqs(found) == upto(600)
    return reader.asked


class CountingReader:
    """A journal that counts the pages of runs it is asked for."""

    def __init__(self, journal: TermReader) -> None:
        self._journal = journal
        self.bounds, self.read, self.terms = journal.bounds, journal.read, journal.terms
        self.asked = 0

    async def read_run(self, run_id: RunId, after: Seq, segments: Sequence[Segment] = ()) -> RunPage:
        self.asked += 1
        return await self._journal.read_run(run_id, after, segments)


async def write(journal: Journal, run_id: str, count: int) -> None:
    for n in range(count):
        await journal.append(make_event(run_id, n))


async def fork_late(journal: Journal) -> None:
    for _ in range(20):
        await anyio.lowlevel.checkpoint()
    await journal.fork("parent", 2, run_id="child", mutation=1)
    await journal.append(make_event("child", 5))


async def collect(journal: Journal, found: list[Entry]) -> None:
    found += await drain(journal.stream(run_id="child"))


def hash_of(found: Sequence[Entry]) -> str:
    return sha256(repr([tuple(entry) for entry in found]).encode()).hexdigest()

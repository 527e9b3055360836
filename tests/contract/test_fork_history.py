"""Forks and retention: gaps are named, children keep their parents, the audit passes."""

from contextlib import suppress

import anyio
import pytest

from tape.bus.journal import Journal
from tape.core.errors import BrokerOverflowError, Conflict
from tape.core.ids import GlobalSeq, RunId
from tape.core.ports import Store
from tests.contract.backends import Backend, needs_ledgers
from tests.contract.events import fill, make_event, read_all, seqs, upto

PARENT, CHILD = RunId("parent"), RunId("child")


async def test_trimmed_history_cannot_be_forked(journal: Journal, store: Store) -> None:
    await fill(journal, "parent", 5)
    await store.retention.trim_run(PARENT, keep=2)

    with pytest.raises(BrokerOverflowError) as gap:
        await journal.fork("parent", 2, run_id="child")

    assert (gap.value.run_id, gap.value.requested_seq, gap.value.available_from) == ("parent", 2, 4)
    assert seqs(await journal.fork("parent", 3, run_id="child")) == [4]


async def test_a_child_of_a_trimmed_run_can_be_forked_no_further_back_than_its_parent(
    journal: Journal, store: Store
) -> None:
    await fill(journal, "parent", 5)
    await store.retention.trim_run(PARENT, keep=2)
    await journal.fork("parent", 4, run_id="child")

    with pytest.raises(BrokerOverflowError) as gap:
        await journal.fork("child", 2, run_id="grandchild")

    assert (gap.value.run_id, gap.value.requested_seq, gap.value.available_from) == ("child", 2, 4)
    assert seqs(await journal.fork("child", 3, run_id="grandchild")) == [4]


async def test_a_run_reaped_by_a_bounded_store_cannot_be_forked(backend: Backend, journal: Journal) -> None:
    await fill(journal, "parent", 3)
    await journal.close_run("parent")
    await journal.reap("parent")

    if not backend.is_bounded:
        assert seqs(await journal.fork("parent", 2)) == [3]
        return
    with pytest.raises(BrokerOverflowError) as gap:
        await journal.fork("parent", 2)
    assert gap.value.available_from == 4


async def test_a_trimmed_ancestor_is_a_gap_that_names_where_the_survivors_begin(journal: Journal, store: Store) -> None:
    await fill(journal, "parent", 6)
    await journal.fork("parent", 4, run_id="child")
    await store.retention.trim_run(PARENT, keep=4)

    with pytest.raises(BrokerOverflowError) as gap:
        await read_all(journal, "child")

    assert (gap.value.run_id, gap.value.requested_seq, gap.value.available_from) == ("child", 1, 3)
    assert seqs(await read_all(journal, "child", 3)) == [3, 4, 5]


async def test_a_child_without_inherited_entries_begins_with_its_own(journal: Journal, store: Store) -> None:
    await fill(journal, "parent", 6)
    await journal.fork("parent", 4, run_id="child")
    await journal.fork("child", 5, run_id="grandchild")
    await store.retention.trim_run(PARENT, keep=0)

    gaps = [await gap_of(journal, run_id) for run_id in ("child", "grandchild")]

    assert gaps == [(1, 5), (1, 5)]
    assert seqs(await read_all(journal, "grandchild", 5)) == [5, 6]


async def test_a_gap_in_the_middle_of_a_lineage_comes_after_what_is_before_it(journal: Journal, store: Store) -> None:
    await fill(journal, "parent", 2)
    await journal.fork("parent", 2, run_id="child", mutation=1)
    await journal.fork("child", 4, run_id="grandchild")
    await store.retention.trim_run(CHILD, keep=0)
    found = []

    with pytest.raises(BrokerOverflowError) as gap:
        async for entry in journal.stream(run_id="grandchild", follow=False):
            found.append(entry.seq)

    assert found == [1, 2]
    assert (gap.value.requested_seq, gap.value.available_from) == (3, 5)


async def test_trimming_the_journal_below_a_fork_point_trims_what_the_child_inherits(
    journal: Journal, store: Store
) -> None:
    await fill(journal, "parent", 4)
    await journal.fork("parent", 4, run_id="child")
    await journal.append([make_event("child", n) for n in (6, 7)])

    await store.retention.trim(GlobalSeq(2))
    below = await gap_of(journal, "child")
    await store.retention.trim(GlobalSeq(6))
    above = await gap_of(journal, "child")

    assert (below, above) == ((1, 3), (1, 7))
    assert (await store.runs.heads([CHILD]))[CHILD].floor == 7
    assert seqs(await read_all(journal, "child", 7)) == [7]


async def test_a_trimmed_child_keeps_the_newest_wherever_they_are(journal: Journal, store: Store) -> None:
    await fill(journal, "parent", 4)
    await journal.fork("parent", 4, run_id="child")
    await journal.append([make_event("child", n) for n in (6, 7)])

    inherited = await store.retention.trim_run(CHILD, keep=5)
    floor_then, gap_then = await journal.floor(), await gap_of(journal, "child")
    own = await store.retention.trim_run(CHILD, keep=2)

    assert (inherited.floor, floor_then, own.floor) == (3, 1, 6)
    assert (gap_then, await gap_of(journal, "child")) == ((1, 3), (1, 6))
    assert seqs(await read_all(journal, "parent")) == upto(4)
    assert seqs(await read_all(journal, "child", 6)) == [6, 7]


async def test_a_run_with_living_children_is_not_reaped(journal: Journal) -> None:
    await fill(journal, "parent", 2)
    await journal.fork("parent", 1, run_id="child")
    await journal.close_run("parent")

    with pytest.raises(Conflict, match="1 living fork"):
        await journal.reap("parent")

    assert seqs(await read_all(journal, "child")) == upto(2)


async def test_children_are_reaped_before_their_parent(journal: Journal, store: Store) -> None:
    await fill(journal, "parent", 2)
    await journal.fork("parent", 1, run_id="child")
    for run_id in ("parent", "child"):
        await journal.close_run(run_id)

    await journal.reap("child")
    await journal.reap("parent")

    parent = await store.runs.find(PARENT)
    assert parent is not None and parent.is_reaped


async def test_a_reaped_child_can_be_opened_again(journal: Journal) -> None:
    await fill(journal, "parent", 2)
    await journal.fork("parent", 1, run_id="child")
    for run_id in ("parent", "child"):
        await journal.close_run(run_id)
    await journal.reap("child")
    await journal.append(make_event("child", 3), open=True)

    with pytest.raises(Conflict, match="living fork"):
        await journal.reap("parent")


async def test_a_fork_that_races_with_reaping_its_parent_is_complete_or_refused(journal: Journal) -> None:
    for n in range(10):
        parent, child = f"parent-{n}", f"child-{n}"
        await fill(journal, parent, 3)
        await journal.close_run(parent)
        done: set[str] = set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(reap_unless_forked, journal, parent, done)
            tasks.start_soon(fork_unless_reaped, journal, parent, child, done)

        assert done
        assert seqs(await read_all(journal, child)) == (upto(3) if "forked" in done else [])


@needs_ledgers
async def test_an_audit_finds_nothing_wrong_with_forks(journal: Journal, store: Store) -> None:
    await fill(journal, "parent", 4)
    await journal.fork("parent", 2, run_id="child", mutation=1)
    await journal.fork("child", 1, run_id="nephew")
    await journal.fork("parent", 4, run_id="trimmed", mutation=1)
    await store.retention.trim_run(RunId("trimmed"), keep=1)

    assert [fault async for page in store.audit.pages() for fault in page.faults] == []


async def gap_of(journal: Journal, run_id: str) -> tuple[int, int]:
    """The gap that a reader of the whole run gets."""
    with pytest.raises(BrokerOverflowError) as gap:
        await read_all(journal, run_id)
    return gap.value.requested_seq, gap.value.available_from


async def reap_unless_forked(journal: Journal, run_id: str, done: set[str]) -> None:
    with suppress(Conflict):
        await journal.reap(run_id)
        done.add("reaped")


async def fork_unless_reaped(journal: Journal, run_id: str, child: str, done: set[str]) -> None:
    with suppress(BrokerOverflowError):
        await journal.fork(run_id, 2, run_id=child)
        done.add("forked")

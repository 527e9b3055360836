"""Retention: floors rise, positions and seqs stay."""

import pytest

from tape.core.errors import UsageError
from tape.core.ids import GlobalSeq, RunId, Seq
from tape.core.ports import Store
from tests.contract.events import append, make_event, positions, seqs


async def test_trimming_raises_the_floor_of_the_journal_and_of_its_runs(store: Store) -> None:
    await append(store, make_event("a"), make_event("b"), make_event("a"), make_event("c"), make_event("a"))

    bounds = await store.retention.trim(GlobalSeq(3))

    heads = await store.runs.heads([RunId("a"), RunId("b"), RunId("c")])
    assert bounds == (4, 5)
    assert {run_id: head.floor for run_id, head in heads.items()} == {"a": 3, "b": 2, "c": 1}
    assert positions((await store.journal.read(GlobalSeq(3))).entries) == [4, 5]


async def test_a_journal_trimmed_empty_counts_on(store: Store) -> None:
    first = await append(store, make_event(n=1), make_event(n=2))
    await store.retention.trim(GlobalSeq(2))

    after = await append(store, make_event(n=3))

    assert (positions(after), seqs(after)) == ([3], [3])
    assert after[0].ts_ms >= first[0].ts_ms
    assert await store.journal.bounds() == (3, 3)


async def test_trimming_again_changes_nothing(store: Store) -> None:
    await append(store, make_event(n=1), make_event(n=2))

    assert await store.retention.trim(GlobalSeq(1)) == await store.retention.trim(GlobalSeq(1)) == (2, 2)


async def test_the_future_cannot_be_trimmed(store: Store) -> None:
    await append(store, make_event())

    with pytest.raises(UsageError, match="the head is 1"):
        await store.retention.trim(GlobalSeq(2))


async def test_a_trimmed_run_keeps_the_newest(store: Store) -> None:
    await append(store, *(make_event(n=n) for n in range(10)))

    head = await store.retention.trim_run(RunId("r1"), keep=3)

    page = await store.journal.read_run(RunId("r1"), Seq(7))
    assert (head.floor, head.last_seq) == (8, 10)
    assert seqs(page.entries) == [8, 9, 10]


async def test_a_run_with_less_than_it_may_keep_is_left_alone(store: Store) -> None:
    await append(store, make_event(), make_event())

    head = await store.retention.trim_run(RunId("r1"), keep=5)

    assert (head.floor, await store.journal.bounds()) == (1, (1, 2))

"""Transactions: set-based work and the entries it stages, together or not at all."""

import anyio
import pytest

from tape.core.errors import ExpectedSeqConflict
from tape.core.ids import GlobalSeq
from tape.core.ports import Store
from tests.contract.backends import needs_ledgers
from tests.contract.events import append, make_event, positions, request

pytestmark = needs_ledgers

COUNT = "SELECT count(*) FROM tape_limits"
INSERT = "INSERT INTO tape_limits (reaction_id) VALUES (:n)"


async def rows(store: Store) -> object:
    async with store.transaction() as tx:
        return (await tx.fetch(COUNT, {}))[0][0]


async def test_rows_and_staged_entries_commit_together(store: Store) -> None:
    async with store.transaction() as tx:
        await tx.fetch(INSERT, {"n": "1"})
        tx.append(request(make_event(n=1)))
        tx.append(request(make_event(n=2), make_event("r2", 3)))

    assert [positions(outcome) for outcome in tx.outcomes] == [[1], [2, 3]]
    assert await rows(store) == 1
    assert (await store.journal.bounds()).head == 3


async def test_a_refused_entry_undoes_the_whole_block(store: Store) -> None:
    with pytest.raises(ExpectedSeqConflict):
        async with store.transaction() as tx:
            await tx.fetch(INSERT, {"n": "1"})
            tx.append(request(make_event(n=1)))
            tx.append(request(make_event(n=2), expected=5))

    assert await rows(store) == 0
    assert (await store.journal.bounds()).head == 0
    assert positions(await append(store, make_event(n=3))) == [1]


async def test_a_block_that_raises_leaves_nothing(store: Store) -> None:
    with pytest.raises(ZeroDivisionError):
        async with store.transaction() as tx:
            await tx.fetch(INSERT, {"n": "1"})
            tx.append(request(make_event(n=1)))
            _ = 1 / 0

    assert await rows(store) == 0
    assert positions(await append(store, make_event(n=2))) == [1]


async def test_a_cancelled_block_leaves_nothing_and_the_store_goes_on(store: Store) -> None:
    assert await rows(store) == 0  # so that there is a connection, and it is the block that is cancelled
    with anyio.move_on_after(0.01):
        async with store.transaction() as tx:
            await tx.fetch(INSERT, {"n": "1"})
            await anyio.sleep_forever()

    assert await rows(store) == 0
    assert positions(await append(store, make_event())) == [1]


async def test_an_append_beside_a_block_disturbs_neither(store: Store) -> None:
    async with anyio.create_task_group() as tasks, store.transaction() as tx:
        tasks.start_soon(append, store, make_event("later"))
        await anyio.wait_all_tasks_blocked()
        tx.append(request(make_event("sooner")))

    page = await store.journal.read(GlobalSeq(0))
    assert {entry.run_id for entry in page.entries} == {"sooner", "later"}
    assert positions(page.entries) == [1, 2]

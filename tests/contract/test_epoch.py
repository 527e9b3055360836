"""A new epoch: the journal goes on where it is, and nobody takes a cursor of the lost one for its own."""

from contextlib import aclosing

from tape.core.ports import Store
from tests.contract.backends import Backend, needs_ledgers
from tests.contract.saying import append, places, said


async def test_a_new_epoch_is_larger_than_the_one_before(store: Store) -> None:
    before = store.epoch

    first, second = await store.new_epoch(), await store.new_epoch()

    assert before < first < second == store.epoch


async def test_entries_of_a_new_epoch_go_on_at_the_head(store: Store) -> None:
    await append(store, said(n=1))
    epoch = await store.new_epoch()

    later = await append(store, said(n=2))

    assert places(later) == [2] and later[0].epoch == epoch


@needs_ledgers
async def test_a_journal_of_two_epochs_has_no_fault(store: Store) -> None:
    await append(store, said(n=1))
    await store.new_epoch()
    await append(store, said(n=2))

    async with aclosing(store.audit.pages()) as pages:
        assert [page.faults async for page in pages if page.faults] == []


async def test_a_new_epoch_is_found_by_whoever_opens_the_store_next(backend: Backend) -> None:
    async with backend.open() as store:
        epoch = await store.new_epoch()

    async with backend.open() as again:
        assert again.epoch == epoch or not backend.is_durable


async def test_an_epoch_that_another_node_begins_is_known_after_the_next_append(backend: Backend) -> None:
    async with backend.open() as store, backend.open() as another:
        other = another if backend.is_durable else store
        epoch = await other.new_epoch()

        (entry,) = await append(store, said(n=1))

        assert store.epoch == entry.epoch == epoch


async def test_an_epoch_that_another_node_begins_is_known_after_the_next_read(backend: Backend) -> None:
    async with backend.open() as store, backend.open() as another:
        other = another if backend.is_durable else store
        epoch = await other.new_epoch()

        await store.journal.bounds()

        assert store.epoch == epoch
